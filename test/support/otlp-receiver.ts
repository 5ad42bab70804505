import { type ReceivedSpan, startGrpcReceiver } from './otlp-sink.ts';
import { until } from './until.ts';

/** An OTLP/gRPC endpoint that knows an exchange's span from an attempt's. */
export interface OtlpReceiver {
  endpoint: string;
  spans: readonly ReceivedSpan[];
  /** Exchange spans (with their attempts) that fit; waits until there are `count`. */
  exchanges(fits: (span: ReceivedSpan) => boolean, count: number): Promise<ReceivedExchange[]>;
  close(): Promise<void>;
}

export interface ReceivedExchange {
  span: ReceivedSpan;
  /** Its CLIENT children, by start. */
  attempts: ReceivedSpan[];
}

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const receiver = await startGrpcReceiver();
  const { spans } = receiver.received;
  const found = (fits: (span: ReceivedSpan) => boolean) =>
    spans
      .filter((span) => 'sidelight.outcome' in span.attributes && fits(span))
      .map((span) => ({ span, attempts: childrenOf(span, spans) }));
  return {
    endpoint: receiver.url,
    spans,
    async exchanges(fits, count) {
      await until(`${count} exchange spans`, () => found(fits).length >= count);
      return found(fits);
    },
    close: () => receiver.close(),
  };
}

function childrenOf(parent: ReceivedSpan, spans: readonly ReceivedSpan[]): ReceivedSpan[] {
  return spans
    .filter((span) => span.traceId === parent.traceId && span.parentSpanId === parent.spanId)
    .toSorted((a, b) => a.startMs - b.startMs);
}
