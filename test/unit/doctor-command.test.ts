import { writeFileSync } from 'node:fs';
import http from 'node:http';
import { type AddressInfo } from 'node:net';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { shippedConfig } from '../../src/lab/envoy-config.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { doctorReport, runDoctor } from '../support/run-doctor.ts';

const cleanup = new Cleanup();
afterEach(() => cleanup.run());

function fileOf(text: string, name = 'file'): string {
  const file = path.join(cleanup.use(tempDir()).path, name);
  writeFileSync(file, text);
  return file;
}

/** A config dump of the shipped config, as far as it is read. */
function dumpOf(name: 'full' | 'observe', change: (text: string) => string = (text) => text): string {
  const { listeners, clusters } = shippedConfig(name).static_resources;
  const dump = (type: string, fields: object) => ({ '@type': `type.googleapis.com/envoy.admin.v3.${type}`, ...fields });
  const configs = [
    dump('BootstrapConfigDump', { bootstrap: { node: { id: 'shop-1' } } }),
    dump('ListenersConfigDump', { static_listeners: listeners.map((listener) => ({ listener })) }),
    dump('ClustersConfigDump', { static_clusters: clusters.map((cluster) => ({ cluster })) }),
  ];
  return change(JSON.stringify({ configs }));
}

async function startAdmin(answer: (path: string) => string | number | undefined): Promise<string> {
  const server = http.createServer(({ url = '' }, response) => {
    const given = answer(url);
    if (given === undefined) return;
    if (typeof given === 'number') response.statusCode = given;
    response.end(String(given));
  });
  cleanup.defer(() => server.closeAllConnections());
  cleanup.defer(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('the arguments', () => {
  it('every mistake is told at once', async () => {
    const { code, err, out } = await runDoctor(['ftp://a', 'http://a/?b', '-'], {
      configDump: ['-'],
      timeout: '0s',
      ignore: ['cluster-mising'],
      host: '',
    });
    expect({ code, out }).toEqual({ code: 4, out: '' });
    expect(err.split('\n')).toEqual([
      expect.stringContaining('URL: found "ftp://a": expected'),
      expect.stringContaining('URL: found "http://a/?b": expected'),
      expect.stringContaining('--timeout: found "0s": expected'),
      expect.stringContaining('--host: found ""'),
      expect.stringContaining(
        '--ignore: found "cluster-mising": expected the id of a finding, perhaps cluster-missing',
      ),
      expect.stringContaining('standard input can be read once only'),
    ]);
  });

  it('nothing to look at is a mistake', async () => {
    const { code, err } = await runDoctor([]);
    expect(code).toBe(4);
    expect(err).toContain('nothing to look at');
  });
});

describe('what is read', () => {
  it('a config dump from standard input, and says what it did not look at', async () => {
    const { code, out } = await runDoctor([], { configDump: ['-'] }, dumpOf('full'));
    expect(code).toBe(0);
    expect(out).toContain('shop-1, Envoy of unknown version: 1 of 1 filter chain attached');
    expect(out).toContain('  profile full, config version 2: listener http, filter chain 0');
    expect(out).toContain('not looked at: counters');
    expect(out).toContain('(shop-1: no stats was given)');
  });

  it('field names as istioctl prints them', async () => {
    const camel = dumpOf('full').replaceAll(
      /"([a-z_]+)":/g,
      (_, name: string) => `"${name.replaceAll(/_([a-z])/g, (__, letter: string) => letter.toUpperCase())}":`,
    );
    expect(camel).toContain('"httpFilters"');
    const { code, out } = await runDoctor([], { configDump: ['-'] }, camel);
    expect(code).toBe(0);
    expect(out).toContain('1 of 1 filter chain attached');
  });

  it('ext_proc filters of others count where Envoy counts them as ours, and nowhere else', async () => {
    const theirs =
      '{"name":"mine","typed_config":{"@type":"a.ExternalProcessor"}},{"name":"mine.too","typed_config":{"@type":"a.ExternalProcessor","stat_prefix":"too"}},';
    const withTheirs = (text: string) => text.replace('"http_filters":[', `"http_filters":[${theirs}`);
    const older = (text: string) => withTheirs(text).replace('"stat_prefix":"sidelight",', '');
    const evidence = async (stats: string, change = withTheirs) => {
      const files = { configDump: [fileOf(dumpOf('full', change))], stats: [fileOf(`${stats}\na: 0\n`)] };
      const report = await doctorReport([], files);
      return report.findings.filter(({ id }) => id === 'failed-open').map((one) => one.evidence);
    };
    const ours = 'http.http.ext_proc.sidelight.failure_mode_allowed';
    const shared = 'http.http.ext_proc.failure_mode_allowed';
    expect(await evidence(`${ours}: 0\n${shared}: 4`)).toEqual([]);
    expect(await evidence(`${shared}: 0\nhttp.http.ext_proc.too.failure_mode_allowed: 4`, older)).toEqual([]);
    expect(await evidence(`${shared}: 4`, older)).toEqual([
      'failure_mode_allowed: 4 of streams_started: 0; message_timeouts: 0; counted together with mine',
    ]);
  });

  it('the files of two proxies, each with its own', async () => {
    const closed = dumpOf('full', (text) => text.replace('"failure_mode_allow":true,', '').replace('shop-1', 'shop-2'));
    const report = await doctorReport([], {
      configDump: [fileOf(dumpOf('full')), fileOf(closed)],
      stats: [
        fileOf(
          'http.http.ext_proc.sidelight.failure_mode_allowed: 4\nhttp.http.ext_proc.sidelight.streams_started: 9\na: 0\n',
        ),
      ],
    });
    expect(report.exitCode).toBe(2);
    expect(report.findings.map(({ id, proxy, evidence }) => [id, proxy, evidence])).toEqual([
      ['failed-open', 'shop-1', 'failure_mode_allowed: 4 of streams_started: 9; message_timeouts: 0'],
      ['fails-closed', 'shop-2', 'failure_mode_allow: absent, which is false'],
    ]);
  });

  it('warnings give 1, unless they are ignored', async () => {
    const file = fileOf(dumpOf('full', (text) => text.replace('"disable_immediate_response":true,', '')));
    expect((await runDoctor([], { configDump: [file] })).code).toBe(1);
    expect((await runDoctor([], { configDump: [file], ignore: ['immediate-response-allowed'] })).code).toBe(0);
  });

  it.each([
    ['no file', () => '/nowhere/dump.json', 'ENOENT: no such file or directory'],
    ['no JSON', () => fileOf('Welcome'), 'not the JSON of /config_dump'],
    ['another JSON', () => fileOf('{"stats": []}'), 'not the JSON of /config_dump'],
  ])('%s: could not look', async (_, file, why) => {
    const { code, out } = await runDoctor([], { configDump: [file()] });
    expect(code).toBe(3);
    expect(out).toContain(`not looked at: what is attached`);
    expect(out).toContain(why);
  });

  it('an admin interface, by GET alone; an answer that does not come is not taken for fine', async () => {
    const url = await startAdmin((asked) => {
      if (asked === '/config_dump?include_eds') return dumpOf('observe');
      return asked === '/stats' ? undefined : 404;
    });
    const { code, out } = await runDoctor([url], { timeout: '2s' });
    expect(code).toBe(0);
    expect(out).toContain(`${url}/stats: no whole answer within 2000 ms`);
    expect(out).toContain(`${url}/runtime: found 404, expected status 200`);
  });

  it('nobody listens: could not look', async () => {
    const { code, out } = await runDoctor(['http://127.0.0.1:1']);
    expect(code).toBe(3);
    expect(out).toContain('not looked at: what is attached');
  });
});
