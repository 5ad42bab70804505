import type { Endpoint } from './endpoint.ts';
import type { Reporter } from './reporter.ts';

/** An upstream connection, as far as entries told. Times are epoch ms, our clock. */
export interface UpstreamConnection {
  /** Unique in this process, and kept when the next log stream goes on telling of it. */
  serial: number;
  streamId: number;
  reporter: Reporter;
  layer: 'http' | 'tcp';
  cluster: string;
  peer: Endpoint;
  /** Unique within one Envoy. */
  connectionId: string;
  openedMs: number;
  /** The latest request's start (http); absent for tcp, where bytes flow without a request. */
  requestStartMs: number | undefined;
  /** The latest request's end, or the latest entry with more bytes than the one before. */
  lastUsedMs: number;
  /** When the latest entry that tells of it came, with or without bytes. */
  lastHeardMs: number;
  /** Half the width of the interval in which Envoy's times lie on our clock. */
  clockUncertaintyMs: number;
  requests: number;
  /** To and from the upstream, since `openedMs` as far as seen. */
  bytes: number;
  /** Requests that are known to run on it now: only those that live long enough for a periodic entry. TCP: itself. */
  underWay: ReadonlyMap<string, UnderWay>;
}

/** A request, or a TCP connection, that goes on. */
export interface UnderWay {
  bytes: number;
  heardMs: number;
}
