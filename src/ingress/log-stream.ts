import type { LogEntry } from '../model/log-entry.ts';
import type { Profile, Reporter } from '../model/reporter.ts';

/** One open log stream: an Envoy worker's HTTP entries, or its TCP entries. */
export interface LogStream {
  /** Unique in this process. */
  id: number;
  profile: Profile;
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

/** The log's name says which profile the config feeds. `undefined`: it is not a name of ours. */
export function profileOfLogName(name: string): Profile | undefined {
  switch (name) {
    case 'sidelight.full':
      return 'full';
    case 'sidelight.observe':
      return 'observe';
    default:
      return undefined;
  }
}
