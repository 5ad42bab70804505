import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Handler } from '../../src/lab/behaviour.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import type { Json } from '../../src/lab/envoy-config.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { manyRetries } from '../../src/lab/istio-defaults.ts';
import type { LoadClient } from '../../src/lab/load.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { failover, retry, retryAtNextPriority } from '../fixtures/cases/parts.ts';
import { type Jaeger, type JaegerTrace, startJaeger, tagOf } from '../support/jaeger.ts';
import { needPart, part } from '../support/part.ts';
import { recipes } from '../support/recipes.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';
import { startLoggingEnvoy } from '../support/tagging-scene.ts';
import { until } from '../support/until.ts';

/* Every search of docs/traces.md, on a real Jaeger, over what one real Envoy did. */
const cleanup = new Cleanup();
let jaeger: Jaeger | undefined;
/** The endpoint that the page calls 10.0.0.7:8080: nobody listens there. */
let dead = '';

const behaviour: Handler = ({ path: asked }) => {
  if (asked.endsWith('/slow')) return { kind: 'respond', status: 200, delayMs: 800 };
  if (asked.endsWith('/hang')) return { kind: 'hang' };
  return { kind: 'respond', status: asked.endsWith('/down') ? 503 : 200 };
};

function routeTo(cluster: string): Json {
  const retried = retry('connect-failure,5xx', retryAtNextPriority);
  return { match: { prefix: `/${cluster}/` }, route: { cluster, timeout: '30s', ...retried } };
}

beforeAll(async () => {
  const bin = part('JAEGER_BIN');
  if (bin === undefined) return;
  const upstreams = cleanup.use(await Upstreams.start({ ips: ['127.0.0.11', '127.0.0.12'], handler: behaviour }));
  const [living = '', gone = ''] = upstreams.addresses;
  dead = gone;
  await upstreams.down('127.0.0.12');
  const started = await startJaeger(cleanup, bin);
  const file = path.join(cleanup.use(tempDir()).path, 'endpoints.yaml');
  // JSON is YAML.
  const list = (endpoint: string) => writeFileSync(file, JSON.stringify({ clusters: { steady: [endpoint] } }));
  list(living);
  const sidelight = cleanup.use(
    await startTestSidelight({
      otlp: { endpoint: started.grpc },
      discovery: { file },
      clusters: [{ match: 'steady', graceMs: 0 }],
    }),
  );
  const envoy = await startLoggingEnvoy(cleanup, 'shop', {
    base: 'full',
    sidelightPort: sidelight.grpcPort,
    clusters: [
      failover(gone, living, staticCluster([], { name: 'payments', extra: manyRetries })),
      failover(gone, living, staticCluster([], { name: 'orders', extra: manyRetries })),
      staticCluster([living], { name: 'steady' }),
    ],
    routes: ['payments', 'orders', 'steady'].map(routeTo),
  });
  const client = cleanup.use(http1Client(envoy.port('http'), 4));
  await send(client);
  await pin(client, sidelight, () => list(gone));
  await until('every trace', async () => {
    const found = (await started.search('service=shop&limit=1000')).map(subject);
    return [...paths, '/steady/stale', 'stale pin'].every((one) => found.includes(one));
  });
  jaeger = started;
}, 120_000);
afterAll(() => cleanup.run());

const paths = [
  '/payments/one',
  '/payments/slow',
  '/payments/down',
  '/payments/hang',
  '/orders/one',
  '/orders/unsampled',
  '/steady/one',
  '/steady/hang',
];

async function send(client: LoadClient): Promise<void> {
  const unsampled = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00' };
  await Promise.all(
    paths.map((each) =>
      client.request(each, {
        ...(each.endsWith('/hang') ? { abortAfterMs: 1500 } : {}),
        ...(each.endsWith('/unsampled') ? { headers: unsampled } : {}),
      }),
    ),
  );
}

/** Sends until one request was seen to go over a pin that is stale, because what it goes to left. */
async function pin(client: LoadClient, sidelight: TestSidelight, leave: () => void): Promise<void> {
  // A connection opened closer to the leaving than the clocks' uncertainty could as well have been opened after it.
  await sleep(2500);
  leave();
  await until('a stale pin', async () => {
    await client.request('/steady/stale');
    return (await sidelight.metric('sidelight_pinned_requests_total', { pin: 'stale' })) > 0;
  });
}

/** What a trace is of: the path that was asked for, or the name of its first span where it is none of a request. */
function subject({ spans }: JaegerTrace): string {
  const asked = spans.map((span) => tagOf(span, 'url.path')).find((found) => typeof found === 'string');
  return asked ?? spans[0]?.operationName ?? 'nothing';
}

const masked = ['/payments/one', '/payments/slow', '/orders/one', '/orders/unsampled'];
const beyondMasked = ['/payments/down', '/payments/hang'];

/** What each search of the page finds: the first cell of its row → what the traces are of. */
const findings: Record<string, readonly string[]> = {
  'masked failures of a cluster': ['/payments/one', '/payments/slow'],
  'masked failures by their cause': masked,
  'the slowest masked ones': ['/payments/slow'],
  'requests over stale pins, and the pins': ['/steady/stale', 'stale pin'],
  'the stale pins alone': ['stale pin'],
  'what failed at one endpoint, hidden or not': [...masked, ...beyondMasked],
  'all that was sent to one endpoint': [...masked, ...beyondMasked],
  "what a caller's abort hid": ['/payments/hang'],
  'retries that did not help': ['/payments/down'],
  'what was kept although its caller did not sample': ['/orders/unsampled'],
};

it('the page has the searches that are run here, and no others', () => {
  expect(recipes().map(({ searchFor }) => searchFor)).toEqual(Object.keys(findings));
});

it.for(recipes())('the search for $searchFor finds that, and nothing else', async ({ searchFor, query }, context) => {
  needPart(context, 'JAEGER_BIN');
  const asked = query.replace(encodeURIComponent('10.0.0.7:8080'), encodeURIComponent(dead));
  const found = await jaeger?.search(asked);
  expect([...new Set(found?.map(subject))].toSorted()).toEqual(findings[searchFor]?.toSorted());
});
