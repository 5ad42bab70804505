import { afterEach, describe, expect, it } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { clearedPin, leftAtMs, pinLife, testEmit } from '../support/emit.ts';
import { childrenOf, startJaeger, tagOf } from '../support/jaeger.ts';
import { judged, masked, pin, startMs } from '../support/judged.ts';
import { needPart } from '../support/part.ts';

const cleanup = new Cleanup();
afterEach(() => cleanup.run());

describe.each([
  ['grpc', 'grpc'],
  ['http/protobuf', 'http'],
] as const)('Jaeger over OTLP %s', (protocol, receiver) => {
  it('finds the trace of a masked failure by a tag, with its failed attempt before the good one', async (context) => {
    const jaeger = await startJaeger(cleanup, needPart(context, 'JAEGER_BIN'));
    const emit = testEmit({
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: jaeger[receiver], OTEL_EXPORTER_OTLP_PROTOCOL: protocol },
    });
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    const traceparent = `00-${traceId}-00f067aa0ba902b7-00`;
    emit.exchange(masked({ exchange: { traceparent } }));
    await emit.shutdown(5000);

    const tags = { 'sidelight.outcome': 'masked', 'sidelight.kept_reason': 'masked' };
    const [trace, ...more] = await jaeger.find('shop', tags, startMs - 60_000);
    expect([trace?.traceID, more]).toEqual([traceId, []]);
    const top = trace?.spans.find((span) => tagOf(span, 'sidelight.outcome') !== undefined);
    const attempts = trace === undefined ? [] : childrenOf(trace, top);
    expect(
      attempts.map((span) => ['sidelight.attempt', 'sidelight.cause', 'error'].map((key) => tagOf(span, key))),
    ).toEqual([
      [1, 'connect_failure', true],
      [2, undefined, undefined],
    ]);
    expect([top?.startTime, top?.duration]).toEqual([startMs * 1000, 1_025_000]);
    expect(attempts.map(({ startTime, duration }) => [startTime - startMs * 1000, duration])).toEqual([
      [0, 1_000_000],
      [1_005_000, 20_000],
    ]);
  });

  it('shows from an exchange over a stale pin a reference to the pin, which is a trace of its own', async (context) => {
    const jaeger = await startJaeger(cleanup, needPart(context, 'JAEGER_BIN'));
    const emit = testEmit({
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: jaeger[receiver], OTEL_EXPORTER_OTLP_PROTOCOL: protocol },
    });
    emit.pinEvent('stale', pinLife());
    emit.exchange(judged({ verdict: { pin: pin({ pin: 'stale', leftAtMs }) } }));
    emit.pinEvent('cleared', clearedPin());
    await emit.shutdown(5000);

    const one = async (tags: Record<string, string>) => (await jaeger.find('shop', tags, startMs - 60_000))[0];
    const life = await one({ 'sidelight.how': 'closed', 'sidelight.closed_by': 'server' });
    const stale = life?.spans.find(({ operationName }) => operationName === 'stale pin');
    expect([stale?.references, life?.spans.length]).toEqual([[], 2]);
    expect(tagOf(stale, 'sidelight.endpoint.left_at')).toBe('2023-11-14T22:13:20.000Z');
    const traffic = await one({ 'sidelight.outcome': 'ok', 'sidelight.pin': 'stale' });
    const exchange = traffic?.spans.find((span) => tagOf(span, 'sidelight.outcome') !== undefined);
    expect(exchange?.references).toEqual([
      expect.objectContaining({ refType: 'FOLLOWS_FROM', traceID: stale?.traceID, spanID: stale?.spanID }),
    ]);
  });
});
