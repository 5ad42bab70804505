import { afterEach, describe, expect, it, type TestContext } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { type Collector, startCollector } from '../support/collector.ts';
import { clearedPin, leftAtMs, pinLife, scraped, testEmit } from '../support/emit.ts';
import { type Jaeger, startJaeger } from '../support/jaeger.ts';
import { attempt, failedBy, judged, masked, pin } from '../support/judged.ts';
import { needPart } from '../support/part.ts';
import { until } from '../support/until.ts';

/* monitoring/collector/config.yaml on a real Collector (the one in Jaeger), between Sidelight's emitter and a real Jaeger. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

async function start(context: TestContext, samplingPercentage: number) {
  const bin = needPart(context, 'JAEGER_BIN');
  const jaeger = await startJaeger(cleanup, bin);
  const collector = await startCollector(cleanup, bin, { jaeger: jaeger.grpc, samplingPercentage });
  return { jaeger, collector };
}

function emitTo({ grpc }: Collector) {
  const emit = testEmit({ otlp: { endpoint: grpc, protocol: 'grpc', intervalMs: 1000 } });
  cleanup.defer(() => emit.shutdown(1000));
  return emit;
}

/** The caller's trace, by the digit that it is made of. `00`: it did not sample. */
const caller = (digit: string, flags = '01') => `00-${digit.repeat(32)}-${digit.repeat(16)}-${flags}`;

/** The ids of the traces that Jaeger has, when these are among them. */
async function tracesIn(jaeger: Jaeger, service: string, expected: readonly string[]): Promise<string[]> {
  let found: string[] = [];
  await until(`${expected.length} traces of ${service}`, async () => {
    // What the emitter wrote is of 2023, or as old as it says.
    const since = `&start=${(leftAtMs - 86_400_000) * 1000}&end=${(Date.now() + 60_000) * 1000}&limit=1000`;
    found = (await jaeger.search(`service=${service}${since}`)).map(({ traceID }) => traceID);
    return expected.every((id) => found.includes(id));
  });
  return found;
}

const exchangesToKeep = {
  a: masked({ exchange: { traceparent: caller('a', '00') } }),
  b: masked({ exchange: { traceparent: caller('b'), durationMs: 25 } }),
  c: judged({ exchange: { traceparent: caller('c') }, verdict: { outcome: 'exhausted' } }),
  d: judged({ exchange: { traceparent: caller('d') }, verdict: { outcome: 'aborted', failedBeforeAbort: true } }),
  e: judged({ exchange: { traceparent: caller('e') }, verdict: { pin: pin({ pin: 'stale', leftAtMs }) } }),
  f: judged({
    exchange: { traceparent: caller('f'), code: 503, attempts: [attempt({ code: 503 })] },
    verdict: { outcome: 'failed', cause: 'status_5xx', attempts: [failedBy('status_5xx')] },
  }),
  '1': judged({ exchange: { traceparent: caller('1'), durationMs: 1500 } }),
};
const plain = [
  judged({ exchange: { traceparent: caller('8') } }),
  judged({ exchange: { traceparent: caller('9') }, verdict: { outcome: 'aborted' } }),
];

describe('the Collector recipe', () => {
  it('keeps all that Sidelight would keep, what failed and what was slow, also where the caller sampled', async (context) => {
    const { jaeger, collector } = await start(context, 0);
    const emit = emitTo(collector);
    for (const exchange of [...plain, ...Object.values(exchangesToKeep)]) emit.exchange(exchange);
    const ids = Object.keys(exchangesToKeep).map((digit) => digit.repeat(32));
    const found = await tracesIn(jaeger, 'shop', ids);
    expect(found.toSorted()).toEqual(ids.toSorted());
  });

  it('keeps a share of the rest: all of it, where it is told so', async (context) => {
    const { jaeger, collector } = await start(context, 100);
    const emit = emitTo(collector);
    for (const exchange of plain) emit.exchange(exchange);
    const ids = ['8'.repeat(32), '9'.repeat(32)];
    expect((await tracesIn(jaeger, 'shop', ids)).toSorted()).toEqual(ids);
  });

  it('keeps the trace of a stale pin, and its end, which comes when all was decided', async (context) => {
    const { jaeger, collector } = await start(context, 0);
    const emit = emitTo(collector);
    const names = async () => {
      const since = `&start=${(leftAtMs - 60_000) * 1000}&end=${Date.now() * 1000}`;
      const found = await jaeger.search(`service=shop${since}`);
      return found.flatMap(({ spans }) => spans.map(({ operationName }) => operationName)).toSorted();
    };
    emit.pinEvent('stale', pinLife());
    await until('the pin', async () => (await names()).includes('stale pin'));
    emit.pinEvent('cleared', clearedPin());
    await until('its end', async () => (await names()).includes('stale pin cleared'));
    expect(await names()).toEqual(['stale pin', 'stale pin cleared']);
  });

  it('leaves out the spans of Envoy’s calls to the tagger', async (context) => {
    const { jaeger, collector } = await start(context, 100);
    const traceId = '7'.repeat(32);
    const now = BigInt(Date.now()) * 1_000_000n;
    const span = (spanId: string, name: string) => ({
      traceId,
      spanId,
      name,
      kind: 3,
      startTimeUnixNano: String(now),
      endTimeUnixNano: String(now + 1_000_000n),
    });
    const tagger = 'async envoy.service.ext_proc.v3.ExternalProcessor.Process egress';
    const spans = [span('1'.repeat(16), 'ingress'), span('2'.repeat(16), tagger)];
    const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'envoy' } }] };
    const answer = await fetch(`${collector.http}/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ spans }] }] }),
    });
    expect(answer.status).toBe(200);
    await tracesIn(jaeger, 'envoy', [traceId]);
    const [trace] = await jaeger.search('service=envoy');
    expect(trace?.spans.map(({ operationName }) => operationName)).toEqual(['ingress']);
  });

  it('gives Prometheus the names of the scrape, and span metrics whose exemplars name the trace', async (context) => {
    const { collector } = await start(context, 0);
    const emit = emitTo(collector);
    emit.exchange(masked({ exchange: { traceparent: caller('a') } }));
    let text = '';
    const calls = () =>
      text
        .split('\n')
        .find((line) => line.startsWith('traces_span_metrics_calls_total{') && line.includes('outcome="masked"'));
    await until('span metrics and metrics', async () => {
      text = await collector.scrape();
      return calls() !== undefined && text.includes('\nsidelight_requests_total{');
    });
    expect(calls()).toContain(`trace_id="${'a'.repeat(32)}"`);
    // A counter's family has its name without `_total` in this format.
    const names = new Set([...text.matchAll(/^(sidelight_\w+?)(?:_bucket|_sum|_count)?\{/gm)].map(([, name]) => name));
    const scrape = [...scraped(emit).keys()].filter((name) => name.startsWith('sidelight_'));
    expect(scrape.filter((name) => !names.has(name))).toEqual([]);
    expect([...names].filter((name) => !scrape.includes(name ?? ''))).toEqual([]);
  });
});
