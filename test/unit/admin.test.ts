import { connect, createServer } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { isLocalHostHeader, isLoopback } from '../../src/admin/host-check.ts';
import type { AdminSources } from '../../src/admin/routes.ts';
import { type Admin, type AdminLimits, defaultAdminLimits, startAdmin } from '../../src/admin/server.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { rawHttp } from '../support/raw-http.ts';

const cleanup = new Cleanup();
afterEach(() => cleanup.run());

function sourcesWith(overrides: Partial<AdminSources> = {}): AdminSources {
  return {
    ready: () => ({ ready: true, reasons: [] }),
    metrics: () => ({ body: ['# HELP a b\n', 'a 1\n'], contentType: 'text/plain; version=0.0.4; charset=utf-8' }),
    exchanges: (query) => [query],
    pins: () => ['pins'],
    endpoints: (query) => [query],
    clusters: () => ['clusters'],
    reporters: () => ['reporters'],
    page: undefined,
    ...overrides,
  };
}

async function started(
  overrides: Partial<AdminSources> = {},
  limits: Partial<AdminLimits> = {},
  onError: (error: unknown) => void = () => undefined,
): Promise<Admin> {
  const admin = await startAdmin({
    host: '127.0.0.1',
    port: 0,
    sources: sourcesWith(overrides),
    onError,
    limits: { ...defaultAdminLimits, ...limits },
  });
  cleanup.defer(() => admin.close(0));
  return admin;
}

async function answer(
  admin: Admin,
  path: string,
  init: RequestInit = {},
): Promise<{ status: number; body: string; headers: Headers }> {
  const response = await fetch(`http://127.0.0.1:${admin.port}${path}`, init);
  return { status: response.status, body: await response.text(), headers: response.headers };
}

describe('the HTTP port', () => {
  it('says that it lives, and whether it is ready', async () => {
    let ready = false;
    const admin = await started({ ready: () => ({ ready, reasons: ready ? [] : ['the file was not read yet'] }) });
    expect(await answer(admin, '/healthz')).toMatchObject({ status: 200, body: '{"status":"ok"}\n' });
    expect(await answer(admin, '/readyz')).toMatchObject({
      status: 503,
      body: '{"ready":false,"reasons":["the file was not read yet"]}\n',
    });
    ready = true;
    expect(await answer(admin, '/readyz')).toMatchObject({ status: 200, body: '{"ready":true,"reasons":[]}\n' });
  });

  it('gives the metrics to GET, and their head to HEAD', async () => {
    const admin = await started();
    const got = await answer(admin, '/metrics');
    expect([got.status, got.body]).toEqual([200, '# HELP a b\na 1\n']);
    expect(got.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    const head = await answer(admin, '/metrics', { method: 'HEAD' });
    expect([head.status, head.body]).toEqual([200, '']);
    expect(head.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  });

  it('gives the lists as JSON', async () => {
    const admin = await started();
    expect((await answer(admin, '/api/v1/pins')).body).toBe('["pins"]\n');
    expect((await answer(admin, '/api/v1/clusters')).body).toBe('["clusters"]\n');
    expect((await answer(admin, '/api/v1/reporters')).body).toBe('["reporters"]\n');
    expect((await answer(admin, '/api/v1/exchanges')).body).toBe('[{"limit":50}]\n');
    const asked = await answer(admin, '/api/v1/exchanges?outcome=masked&limit=7');
    expect(asked.body).toBe('[{"outcome":"masked","limit":7}]\n');
    const traced = await answer(admin, `/api/v1/exchanges?trace=${'AB'.repeat(16)}`);
    expect(traced.body).toBe(`[{"trace":"${'ab'.repeat(16)}","limit":50}]\n`);
    expect(asked.headers.get('content-type')).toBe('application/json; charset=utf-8');
  });

  it.each([
    ['', '{}'],
    ['?endpoint=127.0.0.11', '{"endpoint":{"ip":"127.0.0.11"}}'],
    ['?endpoint=127.0.0.11:80&cluster=a%7Cb', '{"cluster":"a|b","endpoint":{"ip":"127.0.0.11","port":80}}'],
    ['?endpoint=[0:0::1]:80', '{"endpoint":{"ip":"::1","port":80}}'],
    ['?host=Pay.example.com', '{"host":"pay.example.com"}'],
  ])('asks for endpoints by what the query %s says', async (query, asked) => {
    expect((await answer(await started(), `/api/v1/endpoints${query}`)).body).toBe(`[${asked}]\n`);
  });

  it.each(['pay.example.com', '', '127.0.0.1:', '127.0.0.1:99999', '1.2.3'])(
    'refuses endpoint=%s, which is none',
    async (text) => {
      const refused = await answer(await started(), `/api/v1/endpoints?endpoint=${text}`);
      expect(refused.status).toBe(400);
      expect(JSON.parse(refused.body)).toMatchObject({ error: 'bad_query' });
    },
  );

  it.each([
    'outcome=good',
    'outcome=',
    'limit=0',
    'limit=501',
    'limit=1e2',
    'limit=-1',
    'limit=',
    'trace=',
    'trace=abc',
  ])('refuses the query %s and says what is allowed', async (query) => {
    const refused = await answer(await started(), `/api/v1/exchanges?${query}`);
    expect(refused.status).toBe(400);
    expect(JSON.parse(refused.body)).toEqual({ error: 'bad_query', message: expect.stringMatching(/must be/) });
  });

  it('says which paths there are', async () => {
    const missing = await answer(await started(), '/nothing');
    expect([missing.status, JSON.parse(missing.body)]).toEqual([
      404,
      {
        error: 'not_found',
        message:
          'There is: /healthz, /readyz, /metrics, /api/v1/exchanges, /api/v1/pins, /api/v1/endpoints, /api/v1/clusters, /api/v1/reporters, /api/v1/history, /api/v1/events',
      },
    ]);
  });

  it('only reads', async () => {
    const admin = await started();
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      const refused = await answer(admin, '/metrics', { method });
      expect([method, refused.status, refused.headers.get('allow')]).toEqual([method, 405, 'GET, HEAD']);
    }
  });

  it('has no CORS, and headers that keep pages from using it', async () => {
    const { headers } = await answer(await started(), '/api/v1/pins', { headers: { origin: 'http://evil.test' } });
    expect(Object.fromEntries(headers)).toMatchObject({
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    });
    expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  it('refuses a foreign Host on loopback, against DNS rebinding', async () => {
    const admin = await started();
    const ask = (host: string): Promise<string> =>
      rawHttp(admin.port, `GET /metrics HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
    expect(await ask(`rebind.evil.test:${admin.port}`)).toMatch(/^HTTP\/1\.1 403 /);
    expect(await ask(`localhost:${admin.port}`)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('answers to any Host where it is reachable from elsewhere anyway', async () => {
    const admin = await startAdmin({ host: '0.0.0.0', port: 0, sources: sourcesWith(), onError: () => undefined });
    cleanup.defer(() => admin.close(0));
    const got = await rawHttp(
      admin.port,
      'GET /healthz HTTP/1.1\r\nhost: sidelight.mesh.svc\r\nconnection: close\r\n\r\n',
    );
    expect(got).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('survives a source that throws, and says so', async () => {
    const errors: unknown[] = [];
    const boom = new Error('boom');
    const admin = await started(
      {
        pins: () => {
          throw boom;
        },
        metrics: () => ({
          contentType: 'text/plain',
          body: (function* () {
            yield 'a 1\n';
            throw boom;
          })(),
        }),
      },
      {},
      (error) => errors.push(error),
    );
    const failed = await answer(admin, '/api/v1/pins');
    expect([failed.status, failed.body.includes('boom')]).toEqual([500, false]);
    await expect(answer(admin, '/metrics')).rejects.toThrow(/terminated/);
    expect(errors).toEqual([boom, boom]);
    expect((await answer(admin, '/healthz')).status).toBe(200);
  });

  it.each([
    ['not HTTP', 'hello\r\n\r\n', /^HTTP\/1\.1 400 /],
    ['too many headers', `GET / HTTP/1.1\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`, /^HTTP\/1\.1 431 /],
    [
      'a URL that is too long',
      `GET /${'a'.repeat(3000)} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`,
      /^HTTP\/1\.1 414 /,
    ],
    ['no host', 'GET /healthz HTTP/1.0\r\n\r\n', /^HTTP\/1\.1 403 /],
    ['a body', 'POST /metrics HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\nx', /^HTTP\/1\.1 405 /],
    ['a URL that is none', 'GET // HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n', /^HTTP\/1\.1 404 /],
  ])('answers %s and goes on', async (_, bytes, status) => {
    const admin = await started();
    expect(await rawHttp(admin.port, bytes)).toMatch(status);
    expect((await answer(admin, '/healthz')).status).toBe(200);
  });

  it('lets go of a client that does not finish its request', async () => {
    const admin = await started({}, { requestMs: 100 });
    expect(await rawHttp(admin.port, 'GET /healthz HTTP/1.1\r\nhost: loc')).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('makes no more of an answer than its client reads, and lets go of one that does not', async () => {
    let made = 0;
    let isLetGo = false;
    function* endless(): Generator<string> {
      try {
        for (;;) {
          made += 1;
          yield 'x'.repeat(1 << 16);
        }
      } finally {
        isLetGo = true;
      }
    }
    const admin = await started({ metrics: () => ({ contentType: 'text/plain', body: endless() }) }, { answerMs: 500 });
    const socket = connect(admin.port, '127.0.0.1', () =>
      socket.write('GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n'),
    );
    cleanup.defer(() => socket.destroy());
    socket.pause();
    await vi.waitFor(() => expect(isLetGo).toBe(true), 4000);
    // What the kernel's buffers of a loopback connection take, and no more.
    expect(made).toBeGreaterThan(0);
    expect(made).toBeLessThan(1000);
  });

  it('bounds its connections', async () => {
    const admin = await started({}, { connections: 2 });
    const open = await Promise.all(
      [1, 2].map(
        () =>
          new Promise<ReturnType<typeof connect>>((resolve) => {
            const socket = connect(admin.port, '127.0.0.1', () => resolve(socket));
            cleanup.defer(() => socket.destroy());
          }),
      ),
    );
    await expect(rawHttp(admin.port, 'GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n').catch(() => '')).resolves.toBe(
      '',
    );
    for (const socket of open) socket.destroy();
    await vi.waitFor(async () => {
      expect(await rawHttp(admin.port, 'GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /);
    });
  });

  it('says which address it could not have', async () => {
    const other = createServer();
    const port = await new Promise<number>((resolve) => {
      other.listen(0, '127.0.0.1', () => resolve((other.address() as { port: number }).port));
    });
    cleanup.defer(() => other.close());
    await expect(
      startAdmin({ host: '127.0.0.1', port, sources: sourcesWith(), onError: () => undefined }),
    ).rejects.toMatchObject({ code: 'listen_failed', message: expect.stringContaining(`127.0.0.1:${port}`) });
  });

  it('closes, cutting off what takes too long', async () => {
    const admin = await started();
    const socket = connect(admin.port, '127.0.0.1', () => socket.write('GET /healthz HTTP/1.1\r\nhost: loc'));
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.on('error', () => undefined);
    await admin.close(50);
    await expect(rawHttp(admin.port, '')).rejects.toThrow(/ECONNREFUSED/);
  });
});

describe('the check of Host', () => {
  it.each(['localhost', 'LOCALHOST:9464', '127.0.0.1:9464', '127.8.9.1', '[::1]:9464', '[::ffff:127.0.0.1]'])(
    'takes %s',
    (header) => {
      expect(isLocalHostHeader(header)).toBe(true);
    },
  );

  it.each([
    undefined,
    '',
    'evil.test',
    'localhost.evil.test',
    '127.0.0.1.evil.test',
    '10.0.0.1',
    '[::2]',
    '::1',
    'localhost:9464:1',
  ])('refuses %s', (header) => {
    expect(isLocalHostHeader(header)).toBe(false);
  });

  it('is for loopback addresses', () => {
    expect(['localhost', '127.0.0.1', '::1', '0.0.0.0', '::', '10.0.0.1', 'example.com'].map(isLoopback)).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
      false,
    ]);
  });
});
