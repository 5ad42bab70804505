import { describe, expect, it } from 'vitest';
import { ChainTable } from '../../src/assemble/chain-table.ts';
import { Chains } from '../../src/flow/chains.ts';
import { defaultStatusRule } from '../../src/judge/success.ts';
import type { Chain } from '../../src/model/chain.ts';
import type { LogEntry } from '../../src/model/log-entry.ts';
import type { ReporterKind } from '../../src/model/reporter.ts';
import type { Outcome } from '../../src/model/verdict.ts';
import { evenHop, type Hop, type Reported, type Walk, walk } from '../support/chain-entries.ts';
import { downstreamEnd, reporter, upstreamEnd } from '../support/entries.ts';
import { attempt, judged } from '../support/judged.ts';

const options: Walk = {
  workloads: ['edge', 'middle', 'inner'],
  traceId: '0af7651916cd43dd8448eb211c80319c',
  callerSpan: 'b7ad6b7169203331',
  inject: false,
  code: 503,
};

/** The chain that the exchange of a workload begins, after these entries; `outermost` unless told otherwise. */
function chainAfter(reported: readonly Reported[], workload = 'edge', outcome: Outcome = 'exhausted') {
  const chains = new Chains(() => defaultStatusRule);
  for (const { reporter: from, entry } of reported) chains.heard(entry, from, 0);
  return chainOf(chains, reported, workload, outcome);
}

function chainOf(chains: Chains, reported: readonly Reported[], workload: string, outcome: Outcome): Chain | undefined {
  const own = reported.filter(({ reporter: from }) => from.workload === workload);
  const end = own.findLast(({ entry }) => entry.type === 'downstream_end');
  const tries = own.filter(({ entry }) => entry.type === 'upstream_end' && entry.key === end?.entry.key);
  const { method, authority, path, tags } = end?.entry ?? downstreamEnd();
  const attempts = tries.map(({ entry: { firstUpstreamTxMs } }) => attempt({ firstUpstreamTxMs }));
  const from = end?.reporter ?? reporter;
  const facts = { reporter: from, method, authority, path, traceparent: tags.traceparent, attempts };
  const { exchange, verdict } = judged({ exchange: facts, verdict: { outcome } });
  return chains.of(exchange, verdict);
}

/** `edge 3 × middle 3 = 9`. */
function inWords(chain: Chain | undefined): string | undefined {
  if (chain === undefined) return undefined;
  const layers = chain.layers.map(({ workload, attempts, exchanges }) => `${workload} ${attempts / exchanges}`);
  return `${layers.join(' × ')} = ${chain.amplification}`;
}

const three = walk(evenHop([3, 3, 3]), options);

describe('a chain of proxies', () => {
  it.each([false, true])('multiplies what each layer tries, inject: %s', (inject) => {
    const reported = walk(evenHop([3, 2, 4]), { ...options, inject });
    expect(inWords(chainAfter(reported))).toBe('edge 3 × middle 2 × inner 4 = 24');
  });

  it('is in the order of the layers also where none tries again', () => {
    const reported = walk(evenHop([1, 1, 1]), options);
    expect(inWords(chainAfter(reported))).toBe('edge 1 × middle 1 × inner 1 = 1');
    expect(chainAfter(reported, 'middle')).toBeUndefined();
    expect(chainAfter(reported, 'inner')).toBeUndefined();
  });

  it('is whole in whatever order the proxies report', () => {
    expect(inWords(chainAfter(three.toReversed()))).toBe('edge 3 × middle 3 × inner 3 = 27');
  });

  it('begins at its outermost exchange; with inject at each that has one further in', () => {
    expect(chainAfter(three, 'middle')).toBeUndefined();
    const injected = walk(evenHop([3, 3, 3]), { ...options, inject: true });
    expect(inWords(chainAfter(injected, 'middle'))).toBe('middle 3 × inner 3 = 9');
    expect(chainAfter(injected, 'inner')).toBeUndefined();
  });

  it('does not begin at an inner exchange while the outer one goes on', () => {
    const first = three.findIndex(({ reporter: from }) => from.workload === 'edge');
    expect(inWords(chainAfter(three.slice(0, first), 'middle'))).toBe('middle 3 × inner 3 = 9');
    expect(chainAfter(three.slice(0, first + 1), 'middle')).toBeUndefined();
  });

  it('takes the average where a layer did not try each request as often', () => {
    const hop: Hop = { attempts: [...evenHop([1, 3]).attempts, ...evenHop([1, 2]).attempts] };
    expect(inWords(chainAfter(walk(hop, options)))).toBe('edge 2 × middle 2.5 = 5');
  });

  it('counts an attempt that was not sent, though nobody further in saw it', () => {
    const [sent] = evenHop([1, 3]).attempts;
    const hop: Hop = { attempts: [{ sent: false, next: undefined }, ...(sent ? [sent] : [])] };
    expect(inWords(chainAfter(walk(hop, options)))).toBe('edge 2 × middle 3 = 6');
  });

  it('says what sends come to a layer that answers by itself', () => {
    const hop: Hop = { attempts: Array.from({ length: 3 }, () => ({ sent: true, next: { attempts: [] } })) };
    expect(inWords(chainAfter(walk(hop, options)))).toBe('edge 3 × middle 0 = 3');
  });
});

describe('a chain is not known', () => {
  const without = (workload: string) => three.filter(({ reporter: from }) => from.workload !== workload);
  const put = (change: (one: Reported) => Reported) => three.map((one) => change(one));
  const ofKind = (kind: ReporterKind) => put((one) => ({ ...one, reporter: { ...one.reporter, kind } }));

  it.each([
    ['of one layer alone', walk(evenHop([3]), options)],
    ['where the layer between reports to another replica', without('middle')],
    ['without a traceparent', put((one) => ({ ...one, entry: untraced(one.entry) }))],
    ['of two proxies at the door of a workload, which one request passes once', ofKind('sidecar_inbound')],
  ])('%s', (_, reported) => {
    expect(chainAfter(reported)).toBeUndefined();
  });

  it('of what can be, as far as seen here, it is told: without the innermost', () => {
    expect(inWords(chainAfter(without('inner')))).toBe('edge 3 × middle 3 = 9');
  });

  it('where two that tried once cannot be told apart because the client left; by their kinds they can', () => {
    const left = walk(evenHop([1, 1]), options).map(({ reporter: from, entry }) => ({
      reporter: from,
      entry: entry.type === 'downstream_end' ? { ...entry, flags: ['DC' as const] } : entry,
    }));
    expect(chainAfter(left)).toBeUndefined();
    const kinds: Record<string, ReporterKind> = { edge: 'sidecar_outbound', middle: 'waypoint' };
    const known = left.map(({ reporter: from, entry }) => {
      const kind = kinds[from.workload] ?? from.kind;
      return { reporter: { ...from, kind }, entry };
    });
    expect(inWords(chainAfter(known))).toBe('edge 1 × middle 1 = 1');
    expect(chainAfter(known, 'middle')).toBeUndefined();
  });
});

function untraced(entry: LogEntry): LogEntry {
  return { ...entry, tags: { ...entry.tags, traceparent: undefined } };
}

describe('a failure came from', () => {
  const originOf = (reported: readonly Reported[], outcome?: Outcome) =>
    chainAfter(reported, 'edge', outcome)?.origin?.workload;

  it('the innermost layer that failed, which the others passed on', () => {
    expect(originOf(three)).toBe('inner');
  });

  it('the layer behind which all was well', () => {
    const well = three.map((one) =>
      one.reporter.workload === 'inner' ? { ...one, entry: { ...one.entry, code: 200 } } : one,
    );
    expect(originOf(well)).toBe('middle');
  });

  it('the outermost itself where its last attempt was not sent', () => {
    const hop: Hop = { attempts: [...evenHop([1, 3]).attempts, { sent: false, next: undefined }] };
    expect(originOf(walk(hop, options))).toBe('edge');
  });

  it('nowhere where the outermost did not fail', () => {
    expect(originOf(three, 'masked')).toBeUndefined();
  });
});

describe('the table of requests', () => {
  const table = () => new ChainTable({ maxSpans: 100, keepMs: 60_000 });
  const traceparent = (n: number) => `00-${n.toString(16).padStart(32, '0')}-b7ad6b7169203331-01`;
  const end = (n: number) => downstreamEnd({ tags: { traceparent: traceparent(n) } });

  it('stays within its bound under a flood of distinct traces', () => {
    const flooded = table();
    for (let n = 0; n < 10_000; n += 1) flooded.add(end(n), reporter, 'succeeded', 0);
    expect(flooded.size).toBeLessThanOrEqual(100);
    expect(flooded.layers(traceparent(0), end(0))).toEqual([]);
    expect(flooded.layers(traceparent(9999), end(9999))).toHaveLength(1);
    for (let n = 0; n < 10_000; n += 1) flooded.add({ ...end(1), path: `/${n}` }, reporter, 'succeeded', 0);
    expect(flooded.layers(traceparent(1), { ...end(1), path: '/9' })).toEqual([]);
  });

  it('begins a request anew that was not heard of for long', () => {
    const kept = table();
    kept.add(end(1), reporter, 'succeeded', 0);
    kept.add(end(1), reporter, 'succeeded', 60_000);
    expect(kept.layers(traceparent(1), end(1))).toMatchObject([{ exchanges: 2 }]);
    kept.add(end(1), reporter, 'succeeded', 120_001);
    expect(kept.layers(traceparent(1), end(1))).toMatchObject([{ exchanges: 1 }]);
  });

  it('takes no mirror for an attempt, no followed redirect for an end, and junk for no trace', () => {
    const quiet = table();
    const tags = { traceparent: traceparent(1) };
    quiet.add(upstreamEnd({ downstreamRemote: undefined, tags }), reporter, 'succeeded', 0);
    quiet.add(downstreamEnd({ codeDetails: 'internal_redirect', tags }), reporter, 'succeeded', 0);
    quiet.add(downstreamEnd({ tags: { traceparent: 'junk' } }), reporter, 'succeeded', 0);
    expect(quiet.size).toBe(0);
  });

  it('ends also where spans name each other as their parents', () => {
    const looped = table();
    const injected = (spanId: string, parentSpanId: string) =>
      downstreamEnd({
        tags: {
          traceparent: `00-${'a'.repeat(32)}-${spanId}-01`,
          injected: { traceId: 'a'.repeat(32), spanId, parentSpanId, sampled: true },
        },
      });
    const [one, two] = ['1'.repeat(16), '2'.repeat(16)];
    looped.add(injected(one, two), reporter, 'succeeded', 0);
    looped.add(injected(two, one), reporter, 'succeeded', 0);
    expect(looped.layers(`00-${'a'.repeat(32)}-${one}-01`, downstreamEnd())).toMatchObject([{ exchanges: 2 }]);
  });
});
