import { ChainTable } from '../assemble/chain-table.ts';
import { judgeChain } from '../judge/chain.ts';
import { endOf, type StatusRule } from '../judge/success.ts';
import type { Chain } from '../model/chain.ts';
import type { Exchange } from '../model/exchange.ts';
import type { LogEntry } from '../model/log-entry.ts';
import type { Reporter } from '../model/reporter.ts';
import type { Verdict } from '../model/verdict.ts';

/** At 1,000 traced requests a second some ten seconds; each has a few hundred bytes, at worst a few thousand. */
const maxSpans = 10_000;
/** Far longer than a layer waits before it tries again, and than Envoy keeps an entry back. */
const keepMs = 60_000;

/** Proxies in a row: what all of them report of one request, put together where the outermost closes it. */
export class Chains {
  readonly #table = new ChainTable({ maxSpans, keepMs });
  readonly #rule: (cluster: string | undefined) => StatusRule;

  /** `rule`: which statuses fail on a cluster. */
  constructor(rule: (cluster: string | undefined) => StatusRule) {
    this.#rule = rule;
  }

  /** Takes an HTTP entry as it comes. `reporter`: of this entry. `nowMs`: epoch ms. */
  heard(entry: LogEntry, reporter: Reporter, nowMs: number): void {
    if (entry.tags.traceparent === undefined) return;
    const how = entry.type === 'downstream_end' ? endOf(entry, this.#rule(entry.cluster)) : 'succeeded';
    this.#table.add(entry, reporter, how, nowMs);
  }

  /** The chain that a closed exchange begins; absent where it is not known. */
  of(exchange: Exchange, verdict: Verdict): Chain | undefined {
    return judgeChain(exchange, verdict, this.#table.layers(exchange.traceparent, exchange));
  }
}
