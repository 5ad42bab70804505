import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChainTable } from '../../src/assemble/chain-table.ts';
import { judgeChain } from '../../src/judge/chain.ts';
import { type Hop, type Reported, walk } from '../support/chain-entries.ts';
import { downstreamEnd } from '../support/entries.ts';
import { attempt, judged } from '../support/judged.ts';

const workloads = ['edge', 'middle', 'inner'];

/** Each layer tries one to three times; every attempt is sent, or a refused one comes before those that are. */
const inner: fc.Arbitrary<Hop> = tries(fc.constant(undefined));
const middle: fc.Arbitrary<Hop> = tries(inner);
const edge: fc.Arbitrary<Hop> = tries(middle);

function tries(next: fc.Arbitrary<Hop | undefined>): fc.Arbitrary<Hop> {
  const sent = fc.array(next, { minLength: 1, maxLength: 3 });
  return fc.record({ refused: fc.nat({ max: 1 }), sent }).map(({ refused, sent: further }) => ({
    attempts: [
      ...Array.from({ length: refused }, () => ({ sent: false, next: undefined })),
      ...further.map((one) => ({ sent: true, next: one })),
    ],
  }));
}

const scene = fc.record({ hop: edge, inject: fc.boolean() }).chain(({ hop, inject }) => {
  const reported = walk(hop, { workloads, traceId: 'a'.repeat(32), callerSpan: 'b'.repeat(16), inject, code: 503 });
  const order = fc.shuffledSubarray([...reported.keys()], { minLength: reported.length });
  return fc.record({ reported: fc.constant(reported), order, dropped: fc.nat({ max: reported.length - 1 }) });
});

/** What the outermost exchange is told of its chain when all this was reported. */
function chainOf(reported: readonly Reported[], told: readonly Reported[]) {
  const table = new ChainTable({ maxSpans: 10_000, keepMs: 60_000 });
  for (const { entry, reporter } of told) table.add(entry, reporter, 'failed', 0);
  const own = reported.filter(({ reporter }) => reporter.workload === 'edge');
  const { entry, reporter } = own.find(({ entry: { type } }) => type === 'downstream_end') ?? {};
  const { method, authority, path, tags } = entry ?? downstreamEnd();
  const attempts = own.filter(({ entry: { type } }) => type === 'upstream_end').map(() => attempt());
  const facts = { method, authority, path, traceparent: tags.traceparent, attempts };
  const { exchange, verdict } = judged({ exchange: { ...facts, ...(reporter && { reporter }) } });
  return judgeChain(exchange, verdict, table.layers(exchange.traceparent, exchange));
}

function counted(reported: readonly Reported[], workload: string) {
  const own = reported.filter(({ reporter }) => reporter.workload === workload);
  const exchanges = own.filter(({ entry }) => entry.type === 'downstream_end').length;
  return { workload, exchanges, attempts: own.length - exchanges };
}

describe('the chain of any request', () => {
  it('has each layer’s own counts, the outermost first, in whatever order they are reported', () => {
    fc.assert(
      fc.property(scene, ({ reported, order }) => {
        const chain = chainOf(
          reported,
          order.flatMap((index) => reported[index] ?? []),
        );
        const layers = workloads.map((workload) => counted(reported, workload));
        expect(chain?.layers).toMatchObject(layers);
        const product = layers.reduce((factor, { attempts, exchanges }) => factor * (attempts / exchanges), 1);
        expect(chain?.amplification).toBeCloseTo(product);
      }),
    );
  });

  it('is not known when one entry of it was lost, or ends before the layer that lost it: never wrong', () => {
    fc.assert(
      fc.property(scene, ({ reported, dropped }) => {
        const chain = chainOf(reported, reported.toSpliced(dropped, 1));
        const lost = workloads.indexOf(reported[dropped]?.reporter.workload ?? '');
        const whole = workloads.slice(0, lost).map((workload) => counted(reported, workload));
        expect(chain?.layers ?? whole).toMatchObject(whole);
      }),
    );
  });
});
