import type { DrainVerdict } from '../../../judge/drain-facts.ts';
import { reporterName } from '../../../judge/drain-facts.ts';
import type { DrainCurve, EndpointReport, Holder } from '../../../model/endpoint-report.ts';
import type { ClearedPin } from '../../../model/pin-life.ts';
import { judgeHere } from '../../drained/here.ts';
import { blindnessText } from '../../drained/words.ts';
import { endpointsAnswer, reportersAnswer } from '../answers.ts';
import type { Rooms } from '../build-rooms.ts';

const most = { rows: 100, curves: 20, holders: 10, blind: 5, cleared: 50 };

/** Every endpoint that left and is remembered: who may be on it, how it drains, and whether it is drained. */
export function pinsPart(rooms: Rooms) {
  const { quietForMs } = rooms.ground.config.page;
  const endpoints = endpointsAnswer(rooms, { left: true });
  const judge = judgeHere(endpoints, reportersAnswer(rooms), quietForMs);
  const { nowMs } = endpoints;
  const left = endpoints.endpoints.filter(({ state }) => state === 'left').toSorted(worstFirst);
  return {
    quietForMs,
    truncated: left.length > most.rows,
    rows: left.slice(0, most.rows).map((report, index) => ({
      ...boardRow(report),
      curve: index < most.curves ? curveOf(report.drain) : undefined,
      verdict: verdictView(judge(report.endpoint), nowMs),
    })),
    cleared: rooms.books.lives.cleared().slice(-most.cleared).toReversed().map(clearedRow),
  };
}

/** Who still has connections, then who left last: an order that does not change with each request. */
function worstFirst(a: EndpointReport, b: EndpointReport): number {
  return Number(isHeld(b)) - Number(isHeld(a)) || (b.leftAtMs ?? 0) - (a.leftAtMs ?? 0);
}

function isHeld({ connections: { open, idle, unseen } }: EndpointReport): boolean {
  return open + idle + unseen > 0;
}

function boardRow(report: EndpointReport) {
  const { cluster, endpoint, source, subject, leftAtMs, graceMs, lastUsedMs, connections, holders, listedBy, drain } =
    report;
  const opened = holders.map(({ openedMs }) => openedMs);
  const users = [...holders, ...(drain?.reporters ?? [])].map(({ reporter }) => reporter);
  return {
    cluster,
    endpoint,
    source,
    subject,
    leftAtMs,
    graceMs,
    lastUsedMs,
    connections,
    listedBy,
    oldestOpenedMs: opened.length === 0 ? undefined : Math.min(...opened),
    reporters: [...new Set(users.map(reporterName))],
    requests: drain?.requests ?? 0,
    bytes: drain?.bytes ?? 0,
    advice: holders.find(({ advice }) => advice !== undefined)?.advice,
    holders: holders.slice(0, most.holders).map(holderRow),
  };
}

function holderRow({ reporter, layer, connectionId, state, pin, openedMs, lastUsedMs, requests, bytes }: Holder) {
  return { reporter: reporterName(reporter), layer, connectionId, state, pin, openedMs, lastUsedMs, requests, bytes };
}

/** `[from ms, requests, bytes, connections]` of each bucket in which something flowed. */
function curveOf(drain: DrainCurve | undefined) {
  if (drain === undefined) return undefined;
  const { bucketMs, points } = drain;
  return {
    bucketMs,
    points: points.map(({ atMs, requests, bytes, connections }) => [atMs, requests, bytes, connections]),
  };
}

function verdictView({ state, quietMs, blind, holders, moreHolders, openUntilMs }: DrainVerdict, nowMs: number) {
  return {
    state,
    quietMs,
    mayBeOpen: holders.length + moreHolders,
    // Infinite, without limit, is no JSON.
    openUntilMs: Number.isFinite(openUntilMs) ? openUntilMs : undefined,
    blind: blind.slice(0, most.blind).map((one) => ({ reason: one.reason, text: blindnessText(one, nowMs) })),
    moreBlind: Math.max(0, blind.length - most.blind),
  };
}

function clearedRow({ connection, pin, leftAtMs, sinceMs, clearedMs, how, by }: ClearedPin) {
  const { cluster, peer, layer, connectionId, reporter, openedMs } = connection;
  const of = { cluster, endpoint: peer.text, layer, connectionId, reporter: reporterName(reporter), openedMs };
  return { ...of, pin, leftAtMs, sinceMs, clearedMs, how, by };
}
