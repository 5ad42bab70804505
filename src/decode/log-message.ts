import type { LogEntry } from '../model/log-entry.ts';
import type { Reporter } from '../model/reporter.ts';
import type { DecodeError, DecodeLimits } from './limits.ts';
import { httpEntry, tcpEntry } from './log-entry.ts';
import { reporterOfNode } from './reporter.ts';
import { cutText } from './text.ts';
import { wire } from './wire.ts';
import type { WireCommon, WireLogMessage } from './wire-types.ts';

/** One message of a log stream. */
export interface LogMessage {
  /** Who logs; in the first message of a stream only. */
  identifier: { logName: string; reporter: Reporter } | undefined;
  entries: LogEntry[];
  /** Entries that were left out: they have more than `limits.tagsPerEntry` custom tags. */
  refusedEntries: number;
}

export type LogMessageResult = { ok: true; message: LogMessage } | { ok: false; error: DecodeError };

/** Decodes a `StreamAccessLogsMessage`. Never throws, whatever the bytes. */
export function decodeLogMessage(bytes: Uint8Array, limits: DecodeLimits): LogMessageResult {
  if (bytes.length > limits.messageBytes) {
    const text = `log message of ${bytes.length} bytes, over ${limits.messageBytes}`;
    return { ok: false, error: { reason: 'messageBytes', text } };
  }
  try {
    return { ok: true, message: logMessage(wire.logMessage.deserialize(bytes as Buffer), limits) };
  } catch {
    return { ok: false, error: { reason: 'malformed', text: `${bytes.length} bytes that are no log message` } };
  }
}

function logMessage(message: WireLogMessage, limits: DecodeLimits): LogMessage {
  const { identifier, httpLogs, tcpLogs } = message;
  const { textBytes } = limits;
  const all = [
    ...(httpLogs?.logEntry ?? []).map((entry) => ({ entry, read: () => httpEntry(entry, textBytes) })),
    ...(tcpLogs?.logEntry ?? []).map((entry) => ({ entry, read: () => tcpEntry(entry, textBytes) })),
  ];
  const admitted = all.filter(({ entry }) => tagCount(entry.commonProperties) <= limits.tagsPerEntry);
  return {
    identifier: identifier && {
      logName: cutText(identifier.logName ?? '', textBytes),
      reporter: reporterOfNode(identifier.node, textBytes),
    },
    entries: admitted.map(({ read }) => read()),
    refusedEntries: all.length - admitted.length,
  };
}

function tagCount(common: WireCommon | undefined): number {
  return Object.keys(common?.customTags ?? {}).length;
}
