import { afterEach, describe, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { retry, unavailable, upstream } from '../fixtures/cases/parts.ts';
import { startJaeger, tagOf } from '../support/jaeger.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../support/otlp-receiver.ts';
import type { ReceivedSpan } from '../support/otlp-sink.ts';
import { needPart } from '../support/part.ts';
import { layers, mesh, startChain } from '../support/proxy-chain.ts';
import { startTestSidelight, type TestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/* E1: three proxies in a row, each with two retries, and a backend that fails every request. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const caller = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
const sampled = { headers: { traceparent: `00-${caller.traceId}-${caller.spanId}-01` } };

/** What one layer did of one request: 1, 3 and 9 exchanges of three attempts each. */
const ofLayer = {
  edge: { exchanges: 1, attempts: 3 },
  middle: { exchanges: 3, attempts: 9 },
  inner: { exchanges: 9, attempts: 27 },
};

/** One Sidelight that exports to `endpoint`, the chain before it, and a client. */
async function start(endpoint: string, backend: string, inject = false) {
  const sidelight = cleanup.use(await startTestSidelight({ otlp: { endpoint } }));
  const port = sidelight.grpcPort;
  const [edge] = await startChain(cleanup, { sidelightPorts: [port, port, port], backend, inject });
  const client = cleanup.use(http1Client(edge?.port('http') ?? 0));
  return { sidelight, client };
}

/** The counts of each layer, as its own reporter's metrics have them. */
async function counted(sidelight: TestSidelight) {
  const counts = layers.map(async (layer) => {
    const labels = { reporter_workload: layer, reporter_kind: 'envoy' };
    const exchanges = await sidelight.metric('sidelight_attempted_requests_total', labels);
    return [layer, { exchanges, attempts: await sidelight.metric('sidelight_attempts_total', labels) }] as const;
  });
  return Object.fromEntries(await Promise.all(counts));
}

interface ListedExchange {
  workload: string;
  chain?: {
    amplification: number;
    layers: { workload: string; exchanges: number; attempts: number }[];
    origin: number;
  };
}

/** A connect to it is refused. */
async function deadBackend(): Promise<string> {
  return `127.0.0.1:${await freePort()}`;
}

/** The spans of each layer's exchanges, the outermost layer first. */
async function exchangesByLayer(otlp: OtlpReceiver) {
  const all = await otlp.exchanges(() => true, 13);
  return layers.map((layer) => all.map(({ span }) => span).filter(({ service }) => service === layer));
}

/** What a span says of its chain, by the last word of each attribute. */
function chainOf(span: ReceivedSpan | undefined): Record<string, unknown> {
  const prefix = 'sidelight.chain.';
  const facts = Object.entries(span?.attributes ?? {}).filter(([name]) => name.startsWith(prefix));
  return Object.fromEntries(facts.map(([name, value]) => [name.slice(prefix.length), value]));
}

const hasChain = (span: ReceivedSpan) => Object.keys(chainOf(span)).length > 0;

describe('one request through three proxies', () => {
  it('to a backend that answers 503 is 27 requests there, 3 × 3 × 3 by layer, in the caller’s trace', async () => {
    const otlp = cleanup.use(await startOtlpReceiver());
    const backend = await upstream(cleanup, () => unavailable);
    const { sidelight, client } = await start(otlp.endpoint, backend.addresses[0] ?? '');
    expect((await client.request('/cart', sampled)).status).toBe(503);
    expect(backend.requests()).toBe(27);

    const [[edge] = [], ...further] = await exchangesByLayer(otlp);
    expect(await counted(sidelight)).toEqual(ofLayer);
    expect(chainOf(edge)).toEqual({
      amplification: 27,
      factors: '3 × 3 × 3',
      layers: 'edge (envoy) × middle (envoy) × inner (envoy)',
      origin: 'inner (envoy)',
    });
    expect(further.flat().filter(hasChain)).toEqual([]);
    expect(new Set(otlp.spans.map(({ traceId }) => traceId))).toEqual(new Set([caller.traceId]));
    // No proxy tells the next one of a span of its own, so that all name the one who did: the caller.
    const parents = [edge, ...further.flat()].map((span) => span?.parentSpanId);
    expect(new Set(parents)).toEqual(new Set([caller.spanId]));
  });

  it('to a dead backend is 27 refused connects, and each layer is its own in the metrics', async () => {
    const otlp = cleanup.use(await startOtlpReceiver());
    const { sidelight, client } = await start(otlp.endpoint, await deadBackend());
    expect((await client.request('/cart', sampled)).status).toBe(503);
    const [[edge] = []] = await exchangesByLayer(otlp);
    expect(edge?.attributes).toMatchObject({
      'sidelight.chain.factors': '3 × 3 × 3',
      'sidelight.chain.amplification': 27,
    });
    expect(await counted(sidelight)).toEqual(ofLayer);
    const failed = (layer: string, cause: string) =>
      sidelight.metric('sidelight_attempts_total', { reporter_workload: layer, result: 'failed', cause });
    expect(await failed('inner', 'connect_failure')).toBe(27);
    expect([await failed('edge', 'status_5xx'), await failed('middle', 'status_5xx')]).toEqual([3, 9]);
  });

  it.each([
    ['of the caller', sampled, caller.traceId],
    ['that the first proxy’s tagger begins', {}, undefined],
  ])('with inject is one trace %s, and each layer is under the one before it', async (_, request, traceId) => {
    const otlp = cleanup.use(await startOtlpReceiver());
    const { client } = await start(otlp.endpoint, await deadBackend(), true);
    expect((await client.request('/cart', request)).status).toBe(503);
    const [edge = [], middle = [], inner = []] = await exchangesByLayer(otlp);
    expect([edge.length, middle.length, inner.length]).toEqual([1, 3, 9]);
    const ids = new Set(otlp.spans.map((span) => span.traceId));
    expect(ids).toEqual(new Set([traceId ?? edge[0]?.traceId]));
    expect(edge[0]?.parentSpanId).toBe(traceId === undefined ? '' : caller.spanId);
    expect(middle.map(({ parentSpanId }) => parentSpanId)).toEqual(Array(3).fill(edge[0]?.spanId));
    const perMiddle = middle.map(({ spanId }) => inner.filter(({ parentSpanId }) => parentSpanId === spanId).length);
    expect(perMiddle).toEqual([3, 3, 3]);
    expect(edge.map((span) => chainOf(span)['factors'])).toEqual(['3 × 3 × 3']);
    expect(middle.map((span) => chainOf(span)['factors'])).toEqual(['3 × 3', '3 × 3', '3 × 3']);
    expect(inner.filter(hasChain)).toEqual([]);
  });
});

it('one failure that three proxies saw is one trace with three reports, and says where it came from', async () => {
  const otlp = cleanup.use(await startOtlpReceiver());
  const sidelight = cleanup.use(await startTestSidelight({ otlp: { endpoint: otlp.endpoint } }));
  const port = sidelight.grpcPort;
  const options = { sidelightPorts: [port, port, port] as const, backend: await deadBackend(), proxies: mesh };
  const [first] = await startChain(cleanup, { ...options, route: {} });
  const client = cleanup.use(http1Client(first?.port('http') ?? 0));
  for (let n = 0; n < 20; n += 1) {
    const traceparent = `00-${(n + 1).toString(16).padStart(32, '0')}-${caller.spanId}-01`;
    expect((await client.request('/cart', { headers: { traceparent } })).status).toBe(503);
  }
  const spans = (await otlp.exchanges(() => true, 60)).map(({ span }) => span);
  const perTrace = [...Map.groupBy(spans, ({ traceId }) => traceId).values()];
  const kinds = ['sidecar_outbound', 'waypoint', 'sidecar_inbound'];
  // Nobody tried again, so that only the time that each took tells who is inside whom.
  for (const reports of perTrace) {
    const reporters = reports.map(({ attributes }) => String(attributes['sidelight.reporter.kind']));
    expect(reporters.toSorted()).toEqual(kinds.toSorted());
    expect(reports.filter(hasChain).map(chainOf)).toEqual([
      {
        amplification: 1,
        factors: '1 × 1 × 1',
        layers: 'shop (sidecar_outbound) × way (waypoint) × cart (sidecar_inbound)',
        origin: 'cart (sidecar_inbound)',
      },
    ]);
  }
  expect(perTrace).toHaveLength(20);
  const failed = kinds.map((kind) =>
    sidelight.metric('sidelight_requests_total', { reporter_kind: kind, outcome: 'failed' }),
  );
  expect(await Promise.all(failed)).toEqual([20, 20, 20]);
});

it('a caller’s timeouts multiply too: it is the origin, and those behind it were cut off', async () => {
  const otlp = cleanup.use(await startOtlpReceiver());
  const sidelight = cleanup.use(await startTestSidelight({ otlp: { endpoint: otlp.endpoint } }));
  const port = sidelight.grpcPort;
  const backend = await upstream(cleanup, () => ({ kind: 'hang' }));
  const [first] = await startChain(cleanup, {
    sidelightPorts: [port, port, port],
    backend: backend.addresses[0] ?? '',
    proxies: mesh,
    route: {},
    firstRoute: retry('5xx', { per_try_timeout: '0.2s' }),
  });
  const client = cleanup.use(http1Client(first?.port('http') ?? 0));
  expect((await client.request('/cart', sampled)).status).toBe(504);
  const spans = (await otlp.exchanges(() => true, 7)).map(({ span }) => span);
  expect(spans.filter(hasChain).map((span) => [span.attributes['sidelight.outcome'], chainOf(span)])).toEqual([
    [
      'exhausted',
      {
        amplification: 3,
        factors: '3 × 1 × 1',
        layers: 'shop (sidecar_outbound) × way (waypoint) × cart (sidecar_inbound)',
        origin: 'shop (sidecar_outbound)',
      },
    ],
  ]);
});

describe('what the API lists of one trace', () => {
  const listed = async (sidelight: TestSidelight) => {
    const path = `/api/v1/exchanges?trace=${caller.traceId}&limit=500`;
    return (await sidelight.json<{ exchanges: ListedExchange[] }>(path)).exchanges;
  };

  it('is what each proxy says of the request, and at the outermost how it multiplied', async () => {
    // As shipped: each Envoy keeps its entries back for up to a second, so that an outer one's may come first.
    const sidelight = cleanup.use(await startTestSidelight({ join: { lingerMs: 2500 } }));
    const port = sidelight.grpcPort;
    const backend = await deadBackend();
    const [edge] = await startChain(cleanup, { sidelightPorts: [port, port, port], backend, logFlushMs: 1000 });
    const client = cleanup.use(http1Client(edge?.port('http') ?? 0));
    await client.request('/other', { headers: { traceparent: `00-${'a'.repeat(32)}-${caller.spanId}-01` } });
    await client.request('/cart', sampled);
    await until('13 exchanges', async () => (await listed(sidelight)).length >= 13);
    const found = await listed(sidelight);
    expect(layers.map((layer) => found.filter(({ workload }) => workload === layer).length)).toEqual([1, 3, 9]);
    const chains = found.filter(({ chain }) => chain !== undefined);
    expect(chains).toMatchObject([
      {
        workload: 'edge',
        chain: { amplification: 27, layers: layers.map((name) => ({ workload: name, ...ofLayer[name] })), origin: 2 },
      },
    ]);
  });

  it('says nothing of a chain whose middle proxy reports to another replica', async () => {
    const [one, other] = [cleanup.use(await startTestSidelight()), cleanup.use(await startTestSidelight())];
    const sidelightPorts = [one.grpcPort, other.grpcPort, one.grpcPort] as const;
    const [edge] = await startChain(cleanup, { sidelightPorts, backend: await deadBackend() });
    await cleanup.use(http1Client(edge?.port('http') ?? 0)).request('/cart', sampled);
    await until('all exchanges', async () => (await listed(one)).length + (await listed(other)).length >= 13);
    const found = [...(await listed(one)), ...(await listed(other))];
    expect(found.filter(({ chain }) => chain !== undefined)).toEqual([]);
  });
});

it('a search in a real Jaeger finds one trace of the three services, with every attempt', async (context) => {
  const jaeger = await startJaeger(cleanup, needPart(context, 'JAEGER_BIN'));
  const { client } = await start(jaeger.grpc, await deadBackend(), true);
  await client.request('/cart', sampled);
  const trace = await jaeger.whole(caller.traceId, 13 + 39);
  const exchanges = trace.spans.filter((span) => tagOf(span, 'sidelight.outcome') === 'exhausted');
  const services = exchanges.map((span) => trace.processes[span.processID]?.serviceName);
  expect(layers.map((layer) => services.filter((name) => name === layer).length)).toEqual([1, 3, 9]);
  expect(exchanges.map((span) => tagOf(span, 'sidelight.attempts'))).toEqual(Array(13).fill(3));
});
