import { createEmit, type Emit, type EmitOptions } from '../../src/emit/create-emit.ts';
import type { ClearedPin, PinLife } from '../../src/model/pin-life.ts';
import type { UpstreamConnection } from '../../src/model/upstream-connection.ts';
import type { ClusterView } from '../../src/model/view.ts';
import { connection } from './connections.ts';
import { type Family, parsePrometheusText } from './prometheus-text.ts';

/** An emitter that sends nothing, with room for everything, on a clock of its own, unless told otherwise. */
export function testEmit(overrides: Partial<EmitOptions> = {}): Emit {
  return createEmit({
    limits: { reporters: 100, clusters: 5000, endpoints: 5000, recentExchanges: 700 },
    resource: { version: '0.1.0', instanceId: 'replica-1' },
    otlp: { endpoint: undefined, protocol: 'grpc', intervalMs: 10_000 },
    env: {},
    now: () => 1_700_000_000_000,
    sampling: { ratio: 1, keptPerSecond: 5, keptBurst: 20, slowMs: () => 1000 },
    sources: {},
    isPinExpected: () => false,
    onExportFailure: () => undefined,
    ...overrides,
  });
}

/** The text of a scrape. */
export function scrapeText(emit: Emit): string {
  return [...emit.scrape().body].join('');
}

export function scraped(emit: Emit): Map<string, Family> {
  return parsePrometheusText(scrapeText(emit));
}

interface PinParts {
  connection?: Partial<UpstreamConnection>;
  life?: Partial<PinLife>;
}

/** 2023-11-14T22:13:20Z: when the endpoint of `pinLife` left. */
export const leftAtMs = 1_700_000_000_000;

/** A stale pin of connection 7 to 127.0.0.11:8080, which was opened a minute before the endpoint left. */
export function pinLife(parts: PinParts = {}): PinLife {
  return {
    connection: connection({
      openedMs: leftAtMs - 60_000,
      requestStartMs: leftAtMs + 29_000,
      lastUsedMs: leftAtMs + 29_500,
      lastHeardMs: leftAtMs + 29_600,
      requests: 12,
      bytes: 3400,
      ...parts.connection,
    }),
    pin: 'stale',
    leftAtMs,
    source: 'dns',
    sinceMs: leftAtMs + 500,
    ...parts.life,
  };
}

/** The same a minute after the endpoint left, closed by the server. */
export function clearedPin(parts: PinParts & { cleared?: Partial<ClearedPin> } = {}): ClearedPin {
  return { ...pinLife(parts), clearedMs: leftAtMs + 60_000, how: 'closed', by: 'server', ...parts.cleared };
}

/** What discovery knows of a cluster: one address, listed since just now, after one more came and went; unless told otherwise. */
export function clusterView(overrides: Partial<ClusterView> = {}): ClusterView {
  return {
    cluster: 'app',
    source: 'dns',
    subject: 'app.test',
    firstAnswerMs: leftAtMs - 60_000,
    lastAnswerMs: leftAtMs - 1500,
    staleAfterMs: 60_000,
    graceMs: 10_000,
    sameAsProxy: true,
    listed: new Map([['127.0.0.12', leftAtMs]]),
    left: new Map(),
    changes: { added: 2, removed: 1 },
    lastError: undefined,
    ...overrides,
  };
}
