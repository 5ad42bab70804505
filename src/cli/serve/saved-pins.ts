import { z } from 'zod';
import type { Recorder } from '../../flow/recorder.ts';
import { reporterKinds } from '../../model/reporter.ts';

const time = z.number();
const count = z.number().min(0);

/** Connections as the state file keeps them. */
export const savedPinsSchema = z.array(
  z.strictObject({
    reporter: z.strictObject({
      kind: z.enum(reporterKinds),
      workload: z.string(),
      namespace: z.string(),
      pod: z.string(),
      nodeId: z.string(),
      envoyVersion: z.string(),
    }),
    layer: z.enum(['http', 'tcp']),
    cluster: z.string(),
    peer: z.strictObject({
      text: z.string(),
      kind: z.enum(['ip', 'pipe', 'internal', 'other']),
      ip: z.string().optional(),
      port: z.int().optional(),
    }),
    connectionId: z.string(),
    openedMs: time,
    requestStartMs: time.optional(),
    lastUsedMs: time,
    lastHeardMs: time,
    /** Absent: infinite, which JSON has no word for. */
    clockUncertaintyMs: count.optional(),
    requests: count,
    bytes: count,
    /** By key. */
    underWay: z.record(z.string(), z.strictObject({ bytes: count, heardMs: time })),
  }),
);
export type SavedPins = z.output<typeof savedPinsSchema>;

/** More than these are not kept; those to endpoints that left come first. */
const maxSaved = 2000;

/** The connections that may be open, for the next run of this process. */
export function savePins(recorder: Recorder): SavedPins {
  return [...recorder.board(), ...recorder.parked()]
    .toSorted((a, b) => Number(b.verdict.leftAtMs !== undefined) - Number(a.verdict.leftAtMs !== undefined))
    .slice(0, maxSaved)
    .map(({ connection: { serial: _serial, streamId: _stream, ...kept } }) => ({
      ...kept,
      underWay: Object.fromEntries(kept.underWay),
      peer: withoutAbsent(kept.peer),
      requestStartMs: kept.requestStartMs,
      clockUncertaintyMs: Number.isFinite(kept.clockUncertaintyMs) ? kept.clockUncertaintyMs : undefined,
    }));
}

/** Takes them over: they may be open, and count as in use when a log stream tells of them again. */
export function restorePins(
  recorder: Recorder,
  saved: SavedPins,
  watch: (cluster: string, nodeId: string) => void,
): void {
  for (const { cluster, reporter } of saved) watch(cluster, reporter.nodeId);
  recorder.restore(
    saved.map(({ peer, underWay, requestStartMs, clockUncertaintyMs = Number.POSITIVE_INFINITY, ...kept }) => ({
      ...kept,
      peer: { ...peer, ip: peer.ip, port: peer.port },
      underWay: new Map(Object.entries(underWay)),
      requestStartMs,
      clockUncertaintyMs,
    })),
  );
}

function withoutAbsent({ text, kind, ip, port }: SavedPins[number]['peer']): SavedPins[number]['peer'] {
  return { text, kind, ...(ip === undefined ? {} : { ip }), ...(port === undefined ? {} : { port }) };
}
