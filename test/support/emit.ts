import { createEmit, type Emit, type EmitOptions } from '../../src/emit/create-emit.ts';
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
