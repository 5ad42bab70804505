import { readdirSync, readFileSync } from 'node:fs';
import { Joiner } from '../../src/assemble/joiner.ts';
import { tcpConnection } from '../../src/assemble/tcp.ts';
import { decodeLogMessage } from '../../src/decode/log-message.ts';
import { judgeExchange } from '../../src/judge/outcome.ts';
import { defaultStatusRule } from '../../src/judge/success.ts';
import { judgeTcpEnd } from '../../src/judge/tcp.ts';
import type { JoinEvent } from '../../src/model/join-event.ts';
import type { LogEntry } from '../../src/model/log-entry.ts';
import type { AttemptVerdict, JudgedExchange } from '../../src/model/verdict.ts';
import { reporter } from './entries.ts';

const folderOf = (version: string) => new URL(`../fixtures/envoy-${version}/`, import.meta.url);
const limits = { messageBytes: 1 << 22, tagsPerEntry: 64, headerBytes: 1 << 16, textBytes: 1024 };

/** Names of all cases that were recorded with an Envoy, `1.40` or `1.37`. */
export function recordedCases(version: string): string[] {
  return readdirSync(folderOf(version)).map((file) => file.replace(/\.json$/, ''));
}

interface Recording {
  envoy: string;
  /** Envoy's own count of upstream connections at the end. */
  connections: { active: number; destroyedByEnvoy: number; destroyedByServer: number };
  client: { status?: number; error?: string }[];
  messages: { stream: number; bytes: string }[];
}

export function readRecording(name: string, version: string): Recording {
  return JSON.parse(readFileSync(new URL(`${name}.json`, folderOf(version)), 'utf8')) as Recording;
}

function entriesOf(recording: Recording): { stream: number; entry: LogEntry }[] {
  return recording.messages.flatMap(({ stream, bytes }) => {
    const result = decodeLogMessage(Buffer.from(bytes, 'base64'), limits);
    if (!result.ok) throw new Error(result.error.text);
    return result.message.entries.map((entry) => ({ stream, entry }));
  });
}

/** What becomes of a recording: joined, judged, and what the joiner counted. */
export function judgeRecording(name: string, version = '1.40') {
  const recording = readRecording(name, version);
  const from = { ...reporter, envoyVersion: recording.envoy };
  const judged: JudgedExchange[] = [];
  const counts: Partial<Record<JoinEvent, number>> = {};
  const tcp: AttemptVerdict[] = [];
  const joiner = new Joiner(
    { lingerMs: 1, maxWaitMs: 10, maxExchanges: 1000, maxAttempts: 64 },
    {
      exchange: (exchange) =>
        judged.push({ exchange, verdict: judgeExchange(exchange, defaultStatusRule, undefined), chain: undefined }),
      count: (event) => {
        counts[event] = (counts[event] ?? 0) + 1;
      },
    },
  );
  for (const { stream, entry } of entriesOf(recording)) {
    joiner.add({ id: stream, profile: 'observe', reporter: from }, entry, 0);
    const connection = entry.layer === 'tcp' ? tcpConnection({ profile: 'observe' }, entry, from) : undefined;
    if (connection?.phase === 'ended') tcp.push(judgeTcpEnd(connection));
  }
  joiner.advance(10);
  return { judged, counts, tcp };
}
