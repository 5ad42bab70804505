import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Cleanup, dieWithUs } from '../../src/lab/cleanup.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { testEmit } from '../support/emit.ts';
import { masked, startMs } from '../support/judged.ts';
import { needPart } from '../support/part.ts';
import { until } from '../support/until.ts';

const cleanup = new Cleanup();
afterEach(() => cleanup.run());

interface JaegerSpan {
  spanID: string;
  operationName: string;
  references: { refType: string; spanID: string }[];
  /** Epoch µs. */
  startTime: number;
  duration: number;
  tags: { key: string; value: unknown }[];
}

/** Jaeger with its storage in memory; up when this resolves. */
async function startJaeger(bin: string): Promise<{ query: string; grpc: string; http: string }> {
  const dir = cleanup.use(tempDir());
  const [query, queryGrpc, grpc, http] = [await freePort(), await freePort(), await freePort(), await freePort()].map(
    (port) => `127.0.0.1:${port}`,
  );
  const config = {
    service: {
      extensions: ['jaeger_storage', 'jaeger_query'],
      pipelines: { traces: { receivers: ['otlp'], exporters: ['jaeger_storage_exporter'] } },
      telemetry: { metrics: { level: 'none' } },
    },
    extensions: {
      jaeger_query: { storage: { traces: 'mem' }, http: { endpoint: query }, grpc: { endpoint: queryGrpc } },
      jaeger_storage: { backends: { mem: { memory: { max_traces: 1000 } } } },
    },
    receivers: { otlp: { protocols: { grpc: { endpoint: grpc }, http: { endpoint: http } } } },
    exporters: { jaeger_storage_exporter: { trace_storage: 'mem' } },
  };
  const file = path.join(dir.path, 'jaeger.yaml');
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(config));
  const child = spawn(bin, ['--config', file], { stdio: 'ignore' });
  dieWithUs(child);
  cleanup.defer(() => child.kill('SIGKILL'));
  await until('Jaeger', async () => (await fetch(`http://${query}/api/services`).catch(() => undefined))?.ok === true);
  return { query: `http://${query}`, grpc: `http://${grpc}`, http: `http://${http}` };
}

describe.each([
  ['grpc', 'grpc'],
  ['http/protobuf', 'http'],
] as const)('Jaeger over OTLP %s', (protocol, receiver) => {
  it('finds the trace of a masked failure by a tag, with its failed attempt before the good one', async (context) => {
    const jaeger = await startJaeger(needPart(context, 'JAEGER_BIN'));
    const emit = testEmit({
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: jaeger[receiver], OTEL_EXPORTER_OTLP_PROTOCOL: protocol },
    });
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    const traceparent = `00-${traceId}-00f067aa0ba902b7-00`;
    emit.exchange(masked({ exchange: { traceparent } }));
    await emit.shutdown(5000);

    const search = new URL('/api/traces', jaeger.query);
    search.search = new URLSearchParams({
      service: 'shop',
      tags: JSON.stringify({ 'sidelight.outcome': 'masked', 'sidelight.kept_reason': 'masked' }),
      start: String((startMs - 60_000) * 1000),
      end: String((startMs + 60_000) * 1000),
    }).toString();
    let found: { traceID: string; spans: JaegerSpan[] }[] = [];
    await until('the trace', async () => {
      const answer = (await (await fetch(search)).json()) as { data: typeof found | null };
      found = answer.data ?? [];
      return found.length > 0;
    });
    expect(found.map(({ traceID }) => traceID)).toEqual([traceId]);
    const spans = found[0]?.spans ?? [];
    const top = spans.find(({ operationName }) => operationName === 'GET app');
    const attempts = spans
      .filter(({ references }) => references.some(({ spanID }) => spanID === top?.spanID))
      .toSorted((a, b) => a.startTime - b.startTime);
    const tag = (span: JaegerSpan, key: string): unknown => span.tags.find((one) => one.key === key)?.value;
    expect(attempts.map((span) => [span.operationName, tag(span, 'sidelight.cause'), tag(span, 'error')])).toEqual([
      ['attempt 1', 'connect_failure', true],
      ['attempt 2', undefined, undefined],
    ]);
    expect([top?.startTime, top?.duration]).toEqual([startMs * 1000, 1_025_000]);
    expect(attempts.map(({ startTime, duration }) => [startTime - startMs * 1000, duration])).toEqual([
      [0, 1_000_000],
      [1_005_000, 20_000],
    ]);
  });
});
