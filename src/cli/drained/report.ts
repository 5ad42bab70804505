import type { DrainState, DrainVerdict, HeldConnection } from '../../judge/drain-facts.ts';
import { reporterName } from '../../judge/drain-facts.ts';
import { durationText } from '../duration.ts';
import type { Decision } from './decide.ts';
import type { ObservedFacts } from './observer.ts';
import type { DrainedOptions } from './options.ts';
import { blindnessText, endpointText, holderText, ignoredNames, plural, printable } from './words.ts';

/** All that is known at one moment. */
export interface Moment {
  facts: ObservedFacts;
  verdict: DrainVerdict;
}

/** The moment that ended it. */
export interface End extends Moment, Decision {
  options: DrainedOptions;
  waitedMs: number;
}

const mostRows = 20;

/** One line while it waits. Its `key` changes only with what matters, not with the time. */
export function progress({ facts, verdict }: Moment, { target }: DrainedOptions): { key: string; line: string } {
  const { nowMs, quietForMs } = facts;
  const { state, holders, moreHolders, blind, quietMs, openUntilMs = nowMs } = verdict;
  const open = holders.filter((holder) => holder.state === 'open').length;
  const count = holders.length + moreHolders;
  const reasons = blind.map((one) => blindnessText(one, nowMs));
  const words: Record<DrainState, string> = {
    still_listed: 'still listed',
    in_use: open > 0 ? `in use: ${plural(open, 'connection')} open` : 'in use',
    blind: `cannot know: ${reasons[0] ?? ''}`,
    may_be_open: `quiet, but ${count === 0 ? 'forgotten connections' : plural(count, 'connection')} may be open for ${durationText(openUntilMs - nowMs)}`,
    drained: 'drained',
  };
  const also = state !== 'blind' && reasons.length > 0 ? `; besides: ${reasons[0]}` : '';
  const rest = reasons.length > 1 ? ` (and ${reasons.length - 1} more)` : '';
  const quiet =
    state === 'in_use' || state === 'blind'
      ? `; quiet for ${durationText(quietMs)} of ${durationText(quietForMs)}`
      : '';
  const key = [state, open, count, ...blind.map(({ reason, subject }) => `${reason} ${subject}`)].join('|');
  return { key, line: printable(`${target.text}: ${words[state]}${also}${rest}${quiet}`) };
}

/** The last words, for people: the verdict, then who is still there and why, and what to do. */
export function endText(end: End): string {
  const { facts, verdict } = end;
  const { nowMs } = facts;
  const lines = [
    headline(end),
    ...rows(facts.endpoints, (endpoint) => endpointText(endpoint, nowMs)),
    ...rows(worstFirst(verdict.holders), (holder) => holderText(holder, nowMs)),
    ...(verdict.moreHolders > 0 ? [`  and ${plural(verdict.moreHolders, 'further connection')}`] : []),
    ...advice(verdict.holders),
    ...rows(verdict.blind, (one) => `unknown: ${blindnessText(one, nowMs)}`),
    ...ignoredNames(facts).map((one) => `  ${ignoredText(one)}`),
  ];
  return lines.map(printable).join('\n');
}

/** What keeps it from being quiet. */
function inUse({ holders, quietMs }: DrainVerdict, quietForMs: number): string {
  const open = holders.filter(({ state }) => state === 'open').length;
  if (open > 0) return `${plural(open, 'connection')} open`;
  return `quiet for ${durationText(quietMs)} of ${durationText(quietForMs)}`;
}

function ignoredText({ id, known, connected }: ReturnType<typeof ignoredNames>[number]): string {
  if (connected)
    return `--ignore-reporter ${id}: it has a log stream open, so it is not gone, and its connections count`;
  return known ? `taken as gone: ${id}` : `--ignore-reporter ${id}: no reporter is called so`;
}

function headline({ options, facts, verdict, endedBy, waitedMs }: End): string {
  const { text } = options.target;
  const { state, holders, moreHolders, quietMs, openUntilMs = facts.nowMs } = verdict;
  const quiet = durationText(quietMs);
  const known = holders.length + moreHolders;
  const count = known === 0 ? 'forgotten connections' : plural(known, 'connection');
  const wait = durationText(openUntilMs - facts.nowMs);
  const after = `${endedBy === 'verdict' || endedBy === 'timeout' ? 'after' : `${endedBy} after`} ${durationText(waitedMs)}`;
  const words: Record<DrainState, string> = {
    drained: `drained: ${text} has been quiet for ${quiet}, and no connection seen there can be open`,
    may_be_open: `quiet: ${text} has been quiet for ${quiet}, but ${count} may be open for ${wait} (${after})`,
    blind: `unknown: whether ${text} is drained cannot be known (${after})`,
    in_use: `in use: ${text} is not drained; ${inUse(verdict, facts.quietForMs)} (${after})`,
    still_listed: `listed: ${text} has not left yet (${after})`,
  };
  return words[state];
}

function rows<T>(all: readonly T[], text: (one: T) => string): string[] {
  const shown = all.slice(0, mostRows).map((one) => `  ${text(one)}`);
  return all.length > mostRows ? [...shown, `  and ${all.length - mostRows} more (--json has all)`] : shown;
}

const rank = { open: 0, idle: 1, unseen: 2 } as const;

function worstFirst(holders: readonly HeldConnection[]): HeldConnection[] {
  return holders.toSorted((a, b) => rank[a.state] - rank[b.state] || a.openedMs - b.openedMs);
}

/** Each reason once, with those it is about. */
function advice(holders: readonly HeldConnection[]): string[] {
  const byReason = new Map<string, { changes: readonly string[]; names: Set<string> }>();
  for (const { advice: given, reporter } of holders) {
    if (given === undefined) continue;
    const { names } = byReason.get(given.reason) ?? { names: new Set() };
    byReason.set(given.reason, { changes: given.changes, names: names.add(reporterName(reporter)) });
  }
  return Array.from(byReason, ([reason, { changes, names }]) => {
    const [first = '', ...others] = names;
    const who = others.length === 0 ? first : `${first} and ${others.length} more`;
    return `  why: ${reason} (${who}); what ends it: ${changes.join('; or ')}`;
  });
}
