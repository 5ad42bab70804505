import type { LogEntry } from '../model/log-entry.ts';
import type { Profile, Reporter } from '../model/reporter.ts';

/** What a log's name says of the config that sends it. */
export interface LogConfig {
  profile: Profile;
  /** Version of the shipped config, from 1. From 2 on a request that lives for long is logged while it lives. */
  configVersion: number;
}

/** One open log stream: an Envoy worker's HTTP entries, or its TCP entries. */
export interface LogStream extends LogConfig {
  /** Unique in this process. */
  id: number;
  /** A sidecar as its outbound side; the entries tell which side each is. */
  reporter: Reporter;
  /** Address that the stream came from. */
  peer: string;
}

/** Where entries go. What it throws is counted, and the stream goes on. */
export interface LogSink {
  opened(stream: LogStream): void;
  /** A promise holds this stream, and so this Envoy, back until it settles. `receivedMs`: our clock, epoch ms. */
  entries(stream: LogStream, entries: readonly LogEntry[], receivedMs: number): void | Promise<void>;
  closed(stream: LogStream): void;
}

const nameShape = /^sidelight\.(full|observe)(?:\.([2-9]|[1-9]\d{1,3}))?$/;

/** `sidelight.PROFILE` is version 1, `sidelight.PROFILE.N` version N, 2-9999. `undefined`: it is not a name of ours. */
export function logConfigOfName(name: string): LogConfig | undefined {
  const [, profile, version] = nameShape.exec(name) ?? [];
  if (profile !== 'full' && profile !== 'observe') return undefined;
  return { profile, configVersion: version === undefined ? 1 : Number(version) };
}
