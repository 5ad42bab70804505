import { ClockOffset } from '../assemble/clock-offset.ts';
import {
  type ConnectionEnd,
  type ConnectionSeen,
  ConnectionTable,
  type ConnectionTableOptions,
  type UpstreamConnection,
} from '../assemble/connection-table.ts';
import { Joiner, type JoinOptions } from '../assemble/joiner.ts';
import { isMirror } from '../assemble/mirrors.ts';
import { tcpConnection } from '../assemble/tcp.ts';
import { judgeExchange } from '../judge/outcome.ts';
import { judgePin } from '../judge/pin.ts';
import type { StatusRule } from '../judge/success.ts';
import { judgeTcpEnd } from '../judge/tcp.ts';
import { type Attempt, type Exchange, judgedAttempt } from '../model/exchange.ts';
import type { JoinEvent } from '../model/join-event.ts';
import type { LogEntry } from '../model/log-entry.ts';
import type { Profile, Reporter } from '../model/reporter.ts';
import type { TcpConnection } from '../model/tcp-connection.ts';
import { type AttemptVerdict, hasLeft, type JudgedExchange, type PinVerdict } from '../model/verdict.ts';
import type { DiscoveryView } from '../model/view.ts';
import { type BoardRow, judgeConnection, pinBoard } from './pin-board.ts';
import { type ClockMapping, connectionOf, endedMs, openedMs, unknownClock } from './pin-facts.ts';

/** A log stream as `ingress` knows it. */
export interface RecordedStream {
  id: number;
  profile: Profile;
  reporter: Reporter;
}

/** Where the recorder's findings go. */
export interface RecorderSink {
  exchange(judged: JudgedExchange): void;
  tcpEnd(connection: TcpConnection, verdict: AttemptVerdict): void;
  connectionEnd(connection: UpstreamConnection, how: ConnectionEnd, last: PinVerdict): void;
  joinEvent(event: JoinEvent): void;
  /** `x-envoy-attempt-count`, Envoy's attribute and the entries disagree; the entries decide. */
  attemptCountMismatch(): void;
  /** Bytes that went to and from an endpoint that had left. */
  pinnedBytes(connection: UpstreamConnection, bytes: number): void;
}

export interface RecorderOptions {
  join: JoinOptions;
  connections: ConnectionTableOptions;
  /** Which statuses fail on a cluster. */
  rule(cluster: string | undefined): StatusRule;
  view(): DiscoveryView;
  /** Traffic was seen on this cluster: discovery may begin to look. Cheap and never blocks. */
  watch(cluster: string): void;
  /** The reporter of one entry: a sidecar's inbound and outbound sides differ by cluster. */
  reporterOf(base: Reporter, cluster: string | undefined): Reporter;
  now(): number;
}

/** Entries in, judged exchanges out. One per process; streams share it and never each other's keys. */
export class Recorder {
  readonly #options: RecorderOptions;
  readonly #sink: RecorderSink;
  readonly #joiner: Joiner;
  readonly #connections: ConnectionTable;
  readonly #clocks = new Map<number, ClockOffset>();

  constructor(options: RecorderOptions, sink: RecorderSink) {
    this.#options = options;
    this.#sink = sink;
    this.#joiner = new Joiner(options.join, {
      exchange: (exchange, streamId) => this.#judge(exchange, streamId),
      count: (event) => sink.joinEvent(event),
    });
    this.#connections = new ConnectionTable(options.connections, (connection, how) =>
      sink.connectionEnd(connection, how, judgeConnection(connection, options.view(), options.now())),
    );
  }

  opened(stream: RecordedStream): void {
    // What the linger waits for is exactly an entry that Envoy keeps back.
    this.#clocks.set(stream.id, new ClockOffset(this.#options.join.lingerMs));
  }

  entries(stream: RecordedStream, entries: readonly LogEntry[], receivedMs: number): void {
    const clock = this.#clocks.get(stream.id);
    for (const { startMs, durationMs } of entries)
      if (startMs !== undefined && durationMs !== undefined) clock?.observe(startMs + durationMs, receivedMs);
    for (const entry of entries) {
      if (entry.cluster !== undefined) this.#options.watch(entry.cluster);
      if (entry.layer === 'tcp') this.#tcp(stream, entry, receivedMs);
      else this.#http(stream, entry, receivedMs);
    }
  }

  closed(stream: RecordedStream): void {
    this.#joiner.endStream(stream.id, this.#options.now());
    this.#connections.endStream(stream.id);
    this.#clocks.delete(stream.id);
  }

  /** To be called a few times a second. */
  advance(): void {
    const nowMs = this.#options.now();
    this.#joiner.advance(nowMs);
    this.#connections.advance(nowMs);
  }

  /** Gives out all that is still open, for a shutdown. */
  flush(): void {
    this.#joiner.flush();
  }

  /** Every connection in use, judged as of now. */
  board(): BoardRow[] {
    return pinBoard(this.#connections, this.#options.view(), this.#options.now());
  }

  #judge(exchange: Exchange, streamId: number): void {
    const clock = this.#clocks.get(streamId) ?? unknownClock;
    const reporter = this.#options.reporterOf(exchange.reporter, exchange.cluster);
    const attempt = judgedAttempt(exchange);
    const pin = attempt && this.#pin(attempt, exchange, clock);
    const verdict = judgeExchange(exchange, this.#options.rule(exchange.cluster), pin);
    if (exchange.attemptCountMismatch) this.#sink.attemptCountMismatch();
    this.#sink.exchange({ exchange: { ...exchange, reporter }, verdict });
  }

  /** The pin as it was when the attempt ended, by all that discovery knows by now. */
  #pin(attempt: Attempt, exchange: Exchange, clock: ClockMapping): PinVerdict {
    const cluster = attempt.cluster ?? exchange.cluster;
    return judgePin({
      view: cluster === undefined ? undefined : this.#options.view().cluster(cluster),
      endpoint: attempt.peer,
      connectionOpenedMs: openedMs(attempt, clock),
      requestStartMs: exchange.startMs + clock.offsetMs,
      nowMs: endedMs(attempt, clock, this.#options.now()),
      clockUncertaintyMs: clock.uncertaintyMs,
    });
  }

  #http(stream: RecordedStream, entry: LogEntry, receivedMs: number): void {
    this.#joiner.add(stream, entry, receivedMs);
    // Not at the exchange's closing: a linger later the connection may have gone again.
    if (entry.type !== 'upstream_end' || isMirror(entry, stream.reporter.envoyVersion)) return;
    const seen = this.#connection(stream, entry, receivedMs);
    if (seen === undefined) return;
    const bytes = entry.bytesSent + entry.bytesReceived;
    this.#pinned(this.#connections.request(seen, bytes), bytes);
    if (entry.flags.includes('UC')) this.#connections.closed(stream.id, seen.connectionId);
  }

  #tcp(stream: RecordedStream, entry: LogEntry, receivedMs: number): void {
    const connection = tcpConnection(stream, entry, this.#options.reporterOf(stream.reporter, entry.cluster));
    if (connection?.phase === 'ended') this.#sink.tcpEnd(connection, judgeTcpEnd(connection));
    const seen = this.#connection(stream, entry, receivedMs);
    if (seen === undefined) return;
    const bytes = entry.bytesSent + entry.bytesReceived;
    // What flowed before the first entry that we saw is nobody's: it may have flowed before the endpoint left.
    const before = this.#connections.knownBytes(seen) ?? bytes;
    this.#pinned(this.#connections.bytesSoFar(seen, bytes), bytes - before);
    if (connection?.phase === 'ended') this.#connections.closed(stream.id, seen.connectionId);
  }

  #connection(stream: RecordedStream, entry: LogEntry, receivedMs: number): ConnectionSeen | undefined {
    return connectionOf(entry, {
      streamId: stream.id,
      reporter: this.#options.reporterOf(stream.reporter, entry.cluster),
      clock: this.#clocks.get(stream.id) ?? unknownClock,
      receivedMs,
    });
  }

  /** Bytes that moved by the time of the connection's last use. */
  #pinned(connection: UpstreamConnection, bytes: number): void {
    const { pin } = judgeConnection(connection, this.#options.view(), connection.lastUsedMs);
    if (hasLeft(pin)) this.#sink.pinnedBytes(connection, bytes);
  }
}
