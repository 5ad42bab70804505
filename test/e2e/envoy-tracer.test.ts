import { afterEach, expect, it, type TestContext } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { staticCluster } from '../../src/lab/clusters.ts';
import { accessLogs } from '../../src/lab/envoy-config.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { failover, retry, retryAtNextPriority, toApp } from '../fixtures/cases/parts.ts';
import { envoyTracer } from '../support/envoy-tracer.ts';
import { childrenOf, type Jaeger, type JaegerSpan, type JaegerTrace, startJaeger, tagOf } from '../support/jaeger.ts';
import { needPart } from '../support/part.ts';
import { startTestSidelight } from '../support/sidelight.ts';
import { startLoggingEnvoy } from '../support/tagging-scene.ts';
import { until } from '../support/until.ts';

/* Envoy's own tracer and Sidelight send to one real Jaeger: what a search there shows of a masked request. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const caller = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
const service = 'shop';

async function sendMasked(context: TestContext, flags: '00' | '01', upstreamSpans = false): Promise<Jaeger> {
  const jaeger = await startJaeger(cleanup, needPart(context, 'JAEGER_BIN'));
  const upstreams = cleanup.use(await Upstreams.start({ ips: ['127.0.0.11', '127.0.0.12'] }));
  const [living, dead] = upstreams.addresses as [string, string];
  await upstreams.down('127.0.0.12');
  const sidelight = cleanup.use(await startTestSidelight({ otlp: { endpoint: jaeger.grpc } }));
  const envoy = await startLoggingEnvoy(cleanup, service, {
    base: 'full',
    sidelightPort: sidelight.grpcPort,
    runtime: envoyTracer.runtime,
    adapt: (hcm) => {
      envoyTracer.adapt(hcm);
      if (!upstreamSpans) return;
      Object.assign(hcm['tracing'] as object, { spawn_upstream_span: true });
      // The line that the shipped config has as a comment, in the block that both logs share.
      const [log] = accessLogs(hcm);
      if (log === undefined) throw new Error('no access log');
      (log.typed_config.common_config['custom_tags'] as unknown[]).push({ tag: 'span_id', value: '%SPAN_ID%' });
    },
    clusters: [
      failover(dead, living, staticCluster([], { name: 'app' })),
      staticCluster([new URL(jaeger.grpc).host], { name: 'otlp', http2: true }),
    ],
    routes: [toApp(retry('connect-failure', retryAtNextPriority))],
  });
  const client = cleanup.use(http1Client(envoy.port('http')));
  await client.request('/cart', { headers: { traceparent: `00-${caller.traceId}-${caller.spanId}-${flags}` } });
  return jaeger;
}

/** The one trace that there is, when it has as many spans as that. */
async function theTrace(jaeger: Jaeger, size: number): Promise<JaegerTrace> {
  let found: JaegerTrace[] = [];
  await until(`a trace of ${size} spans`, async () => {
    found = await jaeger.search(`service=${service}`);
    return (found[0]?.spans.length ?? 0) >= size;
  });
  expect(found.map(({ traceID, spans }) => [traceID, spans.length])).toEqual([[caller.traceId, size]]);
  return found[0] as JaegerTrace;
}

const ofKind = ({ spans }: JaegerTrace, kind: string) => spans.filter((span) => tagOf(span, 'span.kind') === kind);
const exchangeIn = ({ spans }: JaegerTrace) => spans.find((span) => tagOf(span, 'sidelight.outcome') === 'masked');
const parentOf = (span: JaegerSpan | undefined) => span?.references.map(({ spanID }) => spanID);
/** Envoy's span of its call to our tagger. */
const taggerCall = 'async envoy.service.ext_proc.v3.ExternalProcessor.Process egress';

it('is one trace, in which ours is a child of Envoy’s, and nothing is there twice', async (context) => {
  const trace = await theTrace(await sendMasked(context, '01'), 5);
  const [envoys, ...servers] = ofKind(trace, 'server');
  expect([envoys?.operationName, servers]).toEqual(['ingress', []]);
  const exchange = exchangeIn(trace);
  expect([parentOf(exchange), tagOf(exchange, 'span.kind')]).toEqual([[envoys?.spanID], 'internal']);
  const attempts = childrenOf(trace, exchange);
  expect(attempts.map((span) => tagOf(span, 'sidelight.cause'))).toEqual(['connect_failure', undefined]);
  const clients = ofKind(trace, 'client').filter(({ operationName }) => operationName !== taggerCall);
  expect(clients.map(({ spanID }) => spanID).toSorted()).toEqual(attempts.map(({ spanID }) => spanID).toSorted());
});

it('has no client span of ours beside Envoy’s where Envoy makes one for each attempt', async (context) => {
  const trace = await theTrace(await sendMasked(context, '01', true), 7);
  const [envoys] = ofKind(trace, 'server');
  const exchange = exchangeIn(trace);
  expect([parentOf(exchange), childrenOf(trace, exchange).length]).toEqual([[envoys?.spanID], 2]);
  expect(
    ofKind(trace, 'client')
      .map(({ operationName }) => operationName)
      .toSorted(),
  ).toEqual([taggerCall, 'router app egress', 'router app egress']);
});

it('of a caller that did not sample has ours alone, whose parent is missing, and Jaeger says so', async (context) => {
  const trace = await theTrace(await sendMasked(context, '00'), 3);
  const exchange = exchangeIn(trace);
  expect(tagOf(exchange, 'sidelight.kept_reason')).toBe('masked');
  const [missing] = parentOf(exchange) ?? [];
  expect(trace.spans.map(({ spanID }) => spanID)).not.toContain(missing);
  expect(exchange?.warnings).toEqual([`invalid parent span IDs=${missing}; skipping clock skew adjustment`]);
  expect(childrenOf(trace, exchange)).toHaveLength(2);
});
