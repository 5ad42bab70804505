import { type Blindness, type BlindReason, type HeldConnection, reporterName } from '../../judge/drain-facts.ts';
import { durationText } from '../duration.ts';
import type { MergedEndpoint } from './merge.ts';
import type { ObservedFacts } from './observer.ts';

type Part = 'subject' | 'more' | 'passes' | 'detail';

const sentences: Record<BlindReason, (of: Record<Part, string>) => string> = {
  no_reporter: ({ more, passes }) => `no proxy has a log stream open: nothing is recorded${more}${passes}`,
  reporter_silent: ({ subject, more, passes }) => `${subject} used it and has no log stream open${more}${passes}`,
  reporter_missing: ({ subject, more }) =>
    `${subject}${more} should report and has no log stream open: no traffic yet, or not attached`,
  expected_unknown: ({ subject, more }) => `who should report is not known: ${subject}${more}`,
  long_requests_not_flushed: ({ subject, more }) => `${subject} tells of a request only at its end${more}`,
  source_blind: ({ subject, detail }) =>
    `no source tells whether it is listed: ${[subject, detail].filter((part) => part !== '').join(': ')}`,
  replica_unreachable: ({ subject, detail, passes }) =>
    passes === '' ? `no answer from ${detail}` : `${subject} is gone, and what it heard last${passes}`,
  answer_invalid: ({ detail }) => `not understood: ${detail}`,
  replica_restarted: ({ subject, more, passes }) =>
    `${subject} started lately${more}: what was before, it does not know${passes}`,
  truncated: ({ subject }) => `${subject} left some endpoints or reporters out of its answer: name one endpoint`,
};

/** One thing that hides the truth, as a sentence. */
export function blindnessText({ reason, subject, detail, passesAtMs }: Blindness, nowMs: number): string {
  const passes = passesAtMs === undefined ? '' : `; passes in ${durationText(passesAtMs - nowMs)}`;
  return sentences[reason]({ subject, detail, passes, more: detail === '' ? '' : ` (${detail})` });
}

/** Where an endpoint stands: one line. */
export function endpointText(endpoint: MergedEndpoint, nowMs: number): string {
  const { leftAtMs, graceEndsMs = nowMs, lastUsedMs, requests, bytes, source, subject } = endpoint;
  const by = source === undefined ? '' : ` (${source} ${subject})`;
  const isLeft = endpoint.state === 'left';
  const state = isLeft && leftAtMs !== undefined ? `left ${durationText(nowMs - leftAtMs)} ago` : endpoint.state;
  const grace =
    isLeft && graceEndsMs > nowMs ? `, and may be used by rights for ${durationText(graceEndsMs - nowMs)} more` : '';
  const since = isLeft ? `; since then ${plural(requests, 'request')}, ${bytesText(bytes)}` : '';
  const [someone, ...others] = endpoint.listedBy;
  const also = others.length === 0 ? '' : ` and ${plural(others.length, 'other proxy', 'other proxies')}`;
  const listing = someone === undefined ? '' : `; still in the own list of ${someone}${also}`;
  const forgotten =
    (endpoint.forgottenUntilMs ?? 0) > nowMs
      ? '; connections were forgotten for want of room (pins.maxConnections)'
      : '';
  const used = lastUsedMs === undefined ? 'never used' : `last used ${durationText(nowMs - lastUsedMs)} ago`;
  return `${endpoint.cluster} ${endpoint.endpoint}: ${state}${by}${grace}${listing}${since}; ${used}${forgotten}`;
}

/** Who holds a connection, and until when at most. */
export function holderText(holder: HeldConnection, nowMs: number): string {
  const { reporter, layer, connectionId, state, mayBeOpenUntilMs, openedMs, lastUsedMs } = holder;
  const workload = reporter.workload === '' ? '' : ` (${reporter.workload})`;
  const until =
    state === 'open'
      ? ''
      : mayBeOpenUntilMs === undefined
        ? ', may be open for ever'
        : `, may be open for ${durationText(mayBeOpenUntilMs - nowMs)} more`;
  const used = `last used ${durationText(nowMs - lastUsedMs)} ago`;
  const requests = layer === 'http' ? `${plural(holder.requests, 'request')}, ` : '';
  const age = durationText(nowMs - openedMs);
  return `${reporterName(reporter)}${workload} ${layer} connection ${connectionId} to ${holder.endpoint}: ${state}${until}; ${age} old, ${requests}${bytesText(holder.bytes)}, ${used}`;
}

/** What `--ignore-reporter` did: each id, whether a reporter is called so, and whether it is there after all. */
export function ignoredNames({
  ignored,
  reporters,
  expected,
  endpoints,
}: ObservedFacts): { id: string; known: boolean; connected: boolean }[] {
  const all = [
    ...reporters.map(({ reporter }) => reporter),
    ...(expected?.missing ?? []).map(({ pod }) => ({ nodeId: '', pod })),
    ...endpoints.flatMap(({ users, holders }) => [...users, ...holders.map(({ reporter }) => reporter)]),
  ];
  const isMeant = (id: string) => (reporter: { nodeId: string; pod: string }) =>
    id === reporter.nodeId || id === reporter.pod;
  const open = reporters.filter(({ connected, profile }) => connected && profile !== 'tag');
  return ignored.map((id) => ({
    id,
    known: all.some(isMeant(id)),
    connected: open.some(({ reporter }) => isMeant(id)(reporter)),
  }));
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

export function bytesText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let [value, unit] = [bytes, 0];
  while (value >= 999.5 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${unit === 0 || value >= 99.5 ? Math.round(value) : Number(value.toPrecision(2))} ${units[unit]}`;
}

/** What a proxy or a replica chose to be called may hold anything: nothing of it may steer a terminal. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '�');
}
