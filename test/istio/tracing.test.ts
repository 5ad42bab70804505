import { afterEach, describe, expect, it, type TestContext } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { Upstreams } from '../../src/lab/upstreams.ts';
import { runAttach } from '../support/attach.ts';
import { freeNet, istioPorts, startIstioSidecar, startIstioWaypoint } from '../support/istio.ts';
import { type JaegerSpan, type JaegerTrace, startJaeger, tagOf } from '../support/jaeger.ts';
import { needPart } from '../support/part.ts';
import { startTestSidelight } from '../support/sidelight.ts';
import { until } from '../support/until.ts';

/* Istio's own tracing and Sidelight send to one real Jaeger. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

/** Of the caller: every request of a test is in it. */
const traceId = '0af7651916cd43dd8448eb211c80319c';

/** Every request is traced, to a service whose one endpoint is at this port. On a port that the fixtures' sidecar knows. */
function tracing(port: number): string {
  return `
    apiVersion: telemetry.istio.io/v1
    kind: Telemetry
    metadata: { name: all, namespace: istio-system }
    spec: { tracing: [{ providers: [{ name: collector }], randomSamplingPercentage: 100 }] }
    ---
    apiVersion: v1
    kind: Service
    metadata: { name: collector, namespace: sidelight }
    spec: { clusterIP: 10.2.0.51, selector: { app: collector }, ports: [{ name: grpc, port: 50051, protocol: TCP }] }
    ---
    apiVersion: discovery.k8s.io/v1
    kind: EndpointSlice
    metadata: { name: collector-1, namespace: sidelight, labels: { kubernetes.io/service-name: collector } }
    addressType: IPv4
    ports: [{ name: grpc, port: ${port}, protocol: TCP }]
    endpoints: [{ addresses: [127.0.0.1], conditions: { ready: true } }]`.replaceAll(/^ {4}/gm, '');
}

/** Envoy's span of its call to our tagger. */
const taggerCall = 'async envoy.service.ext_proc.v3.ExternalProcessor.Process egress';

/** `kind`: of the span that Istio's Envoy makes of a request. `service`: as Istio names it. */
describe.each([
  {
    proxy: 'sidecar',
    start: startIstioSidecar,
    target: '--to sidecar-outbound --selector app=client',
    workload: 'client',
    kind: 'client',
  },
  { proxy: 'waypoint', start: startIstioWaypoint, target: '--to waypoint', workload: 'waypoint', kind: 'server' },
] as const)('a $proxy that Istio lets trace', ({ start, target, workload, kind }) => {
  it('has one trace of its requests: ours under its own spans, and each attempt once', async (context: TestContext) => {
    const net = await freeNet();
    const jaeger = await startJaeger(cleanup, needPart(context, 'JAEGER_BIN'));
    const sidelight = cleanup.use(await startTestSidelight({ otlp: { endpoint: jaeger.grpc } }));
    const web = cleanup.use(await Upstreams.start({ ips: [`${net}.11`, `${net}.12`], port: istioPorts.endpoint }));
    web.handle(() => ({ kind: 'respond', status: 503 }), `${net}.12`);
    const flags = `${target} --namespace app --profile full --message-timeout 1s --service sidelight.sidelight`;
    const yaml = [runAttach(...flags.split(' ')), 'retries.yaml', tracing(Number(new URL(jaeger.grpc).port))];
    const options = { net, sidelightPort: sidelight.grpcPort, mesh: 'mesh-tracing.yaml', yaml };
    const client = await (await start(context, cleanup, options)).client();
    const count = (labels = {}) => sidelight.metric('sidelight_requests_total', labels);
    await until('masked requests', async () => {
      await client.request('/cart', { headers: { traceparent: `00-${traceId}-b7ad6b7169203331-01` } });
      return (await count({ outcome: 'masked' })) > 0;
    });
    await until('every request', async () => (await count()) === client.log.length);

    let trace: JaegerTrace | undefined;
    // Envoy sends its spans every five seconds.
    await until(
      'the spans of every request, Istio’s and ours',
      async () => {
        [trace] = await jaeger.search(`service=${workload}`);
        const parents = exchanges(trace).filter(({ parent }) => parent !== undefined);
        return parents.length === client.log.length;
      },
      30_000,
    );
    expect(trace?.traceID).toBe(traceId);
    for (const { exchange, parent } of exchanges(trace)) {
      expect([tagOf(exchange, 'span.kind'), tagOf(parent, 'span.kind')]).toEqual(['internal', kind]);
      expect(serviceOf(trace, parent)).toBe(`${workload}.app`);
    }
    // Not one of ours for what Istio has already: a span of Istio's for a request, one of ours for an attempt.
    const own = (trace?.spans ?? []).filter(({ operationName }) => operationName !== taggerCall);
    const ofKind = (service: string, wanted: string) =>
      own.filter((span) => serviceOf(trace, span) === service && tagOf(span, 'span.kind') === wanted).length;
    expect(ofKind(`${workload}.app`, kind)).toBe(client.log.length);
    expect(ofKind(workload, 'client')).toBe(await sidelight.metric('sidelight_attempts_total'));
    expect([ofKind(workload, 'server'), ofKind(`${workload}.app`, 'internal')]).toEqual([0, 0]);
  });
});

/** Ours, each with the span that it is under; absent where Jaeger has not got that yet. */
function exchanges(trace: JaegerTrace | undefined) {
  const spans = trace?.spans ?? [];
  return spans
    .filter((span) => tagOf(span, 'sidelight.outcome') !== undefined)
    .map((exchange) => ({
      exchange,
      parent: spans.find(({ spanID }) => spanID === exchange.references[0]?.spanID),
    }));
}

function serviceOf(trace: JaegerTrace | undefined, span: JaegerSpan | undefined): string | undefined {
  return trace?.processes[span?.processID ?? '']?.serviceName;
}
