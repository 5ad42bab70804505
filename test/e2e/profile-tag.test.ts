import path from 'node:path';
import { afterEach, expect, it, type TestContext } from 'vitest';
import { parse } from 'yaml';
import { findEnvoy } from '../../setup/envoy.mjs';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { assignment, type Bootstrap } from '../../src/lab/envoy-config.ts';
import { startEnvoy } from '../../src/lab/envoy-process.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { runAttach } from '../support/attach.ts';
import { needPart } from '../support/part.ts';
import { startTestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/* Profile `tag` is all that an Envoy before 1.37 can have (Istio 1.28): it must work there too. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const plain = path.join(import.meta.dirname, '../fixtures/attach/plain.yaml');
const ips = ['127.0.0.11', '127.0.0.12'];

const envoys: Record<string, (context: TestContext) => string> = {
  'this Envoy': () => findEnvoy().path,
  'Envoy 1.36': (context) => needPart(context, 'OLD_ENVOY_BIN'),
};
const cases = Object.keys(envoys).flatMap((name) =>
  ['', '--sample 100%', '--inject'].map((more) => [name, more] as const),
);

it.for(cases)('on %s it tags each request, and tells the retried ones %s', async ([which, more], context) => {
  const bin = envoys[which]?.(context) ?? '';
  const sidelight = cleanup.use(await startTestSidelight({ tagging: { responseHeaders: 'always' } }));
  const port = await freePort(ips);
  const web = cleanup.use(await Upstreams.start({ ips, port }));
  web.handle(() => ({ kind: 'respond', status: 503 }), '127.0.0.11');
  const command = `--to envoy --config ${plain} --profile tag --message-timeout 1s --address 127.0.0.1:${sidelight.grpcPort} ${more}`;
  const config = parse(runAttach(...command.trim().split(' '))) as Bootstrap;
  const app = config.static_resources.clusters.find(({ name }) => name === 'app');
  if (app)
    app['load_assignment'] = assignment(
      'app',
      ips.map((ip) => `${ip}:${port}`),
    );
  const envoy = cleanup.use(await startEnvoy({ bin, config }));
  const client = cleanup.use(http1Client(envoy.port('http')));

  for (let sent = 0; sent < 20; sent += 1) await client.request('/');
  expect(client.log.map(({ headers }) => headers['x-sidelight-profile'])).toEqual(client.log.map(() => 'tag'));
  expect(client.log.map(({ headers }) => headers['x-sidelight-endpoint'])).toContain(`127.0.0.12:${port}`);
  const retried = client.log.filter(({ headers }) => Number(headers['x-sidelight-attempts']) > 1).length;
  expect(retried).toBeGreaterThan(0);
  await until(
    'all of them',
    async () => (await sidelight.metric('sidelight_requests_total', { outcome: 'unknown' })) === 20,
  );
  expect(await sidelight.metric('sidelight_retried_requests_total')).toBe(retried);
});
