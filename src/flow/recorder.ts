import { ClockOffset } from '../assemble/clock-offset.ts';
import {
  type ConnectionEnd,
  type ConnectionSeen,
  ConnectionTable,
  type ConnectionTableOptions,
} from '../assemble/connection-table.ts';
import { Joiner, type JoinOptions } from '../assemble/joiner.ts';
import { tcpConnection } from '../assemble/tcp.ts';
import { judgeExchange } from '../judge/outcome.ts';
import { judgePin } from '../judge/pin.ts';
import type { StatusRule } from '../judge/success.ts';
import { judgeTcpEnd } from '../judge/tcp.ts';
import type { ClosedBy } from '../model/closed-by.ts';
import { type Endpoint, isSilentTunnel } from '../model/endpoint.ts';
import { type Attempt, type Exchange, judgedAttempt } from '../model/exchange.ts';
import type { JoinEvent } from '../model/join-event.ts';
import type { LogEntry } from '../model/log-entry.ts';
import type { Profile, Reporter } from '../model/reporter.ts';
import type { TcpConnection } from '../model/tcp-connection.ts';
import type { UpstreamConnection } from '../model/upstream-connection.ts';
import type { AttemptVerdict, JudgedExchange, PinVerdict } from '../model/verdict.ts';
import type { DiscoveryView } from '../model/view.ts';
import { Chains } from './chains.ts';
import { type BoardRow, judgeConnection, pinBoard } from './pin-board.ts';
import { type ClockMapping, connectionOf, endedMs, openedMs, unknownClock } from './pin-facts.ts';
import { Suspects } from './suspects.ts';

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
  connectionEnd(connection: UpstreamConnection, how: ConnectionEnd, last: PinVerdict, by: ClosedBy | undefined): void;
  /** There is no room to remember a connection any longer, though it may be open. */
  connectionForgotten(connection: UpstreamConnection): void;
  joinEvent(event: JoinEvent): void;
  /** `x-envoy-attempt-count`, Envoy's attribute and the entries disagree; the entries decide. */
  attemptCountMismatch(): void;
  /** Something moved on a connection, judged as of its last use. */
  connectionUse(connection: UpstreamConnection, moved: { requests: number; bytes: number }, pin: PinVerdict): void;
  /** A connection was heard of for the first time. */
  connectionOpened(connection: UpstreamConnection): void;
  /** A request was sent to an endpoint, or a TCP connection was tried. */
  endpointTried(cluster: string, endpoint: Endpoint): void;
}

export interface RecorderOptions {
  join: JoinOptions;
  connections: ConnectionTableOptions;
  /** Which statuses fail on a cluster. */
  rule(cluster: string | undefined): StatusRule;
  view(): DiscoveryView;
  /** This node sent traffic to this cluster: discovery may begin to look. Cheap and never blocks. */
  watch(cluster: string, nodeId: string): void;
  /** After which a proxy closes a connection that nobody uses; `undefined`: never. */
  idleTimeoutMs(connection: UpstreamConnection): number | undefined;
  /** The reporter of one entry: a sidecar's inbound and outbound sides differ by cluster. */
  reporterOf(base: Reporter, cluster: string | undefined): Reporter;
  now(): number;
}

/** Of a request that lives the shipped configs tell this often, ms: of a shorter one no other replica was told. */
const periodicMs = 5000;

/** Entries in, judged exchanges out. One per process; streams share it and never each other's keys. */
export class Recorder {
  readonly #options: RecorderOptions;
  readonly #sink: RecorderSink;
  readonly #joiner: Joiner;
  readonly #connections: ConnectionTable;
  readonly #suspects = new Suspects();
  readonly #chains: Chains;
  readonly #streams = new Map<number, { clock: ClockOffset; openedMs: number }>();

  constructor(options: RecorderOptions, sink: RecorderSink) {
    this.#options = options;
    this.#sink = sink;
    this.#chains = new Chains((cluster) => options.rule(cluster));
    this.#joiner = new Joiner(options.join, {
      exchange: (exchange, streamId) => this.#judge(exchange, streamId),
      count: (event) => sink.joinEvent(event),
    });
    this.#connections = new ConnectionTable(options.connections, {
      ended: (connection, how, by) => {
        this.#suspects.delete(connection);
        sink.connectionEnd(connection, how, this.#judgeNow(connection), by);
      },
      idleTimeoutMs: (connection) => options.idleTimeoutMs(connection),
      forgotten: (connection) => sink.connectionForgotten(connection),
      isPinned: (connection) => this.#judgeNow(connection).leftAtMs !== undefined,
    });
  }

  opened(stream: RecordedStream): void {
    // What the linger waits for is exactly an entry that Envoy keeps back.
    const clock = new ClockOffset(this.#options.join.lingerMs);
    this.#streams.set(stream.id, { clock, openedMs: this.#options.now() });
  }

  entries(stream: RecordedStream, entries: readonly LogEntry[], receivedMs: number): void {
    const clock = this.#streams.get(stream.id)?.clock;
    for (const { startMs, durationMs } of entries)
      if (startMs !== undefined && durationMs !== undefined) clock?.observe(startMs + durationMs, receivedMs);
    for (const entry of entries) {
      if (entry.cluster !== undefined) this.#options.watch(entry.cluster, stream.reporter.nodeId);
      if (entry.layer === 'tcp') this.#tcp(stream, entry, receivedMs);
      else this.#http(stream, entry, receivedMs);
    }
  }

  closed(stream: RecordedStream): void {
    this.#joiner.endStream(stream.id, this.#options.now());
    this.#connections.endStream(stream.id);
    this.#streams.delete(stream.id);
  }

  /** To be called a few times a second. */
  advance(): void {
    const nowMs = this.#options.now();
    this.#joiner.advance(nowMs);
    this.#connections.advance(nowMs);
  }

  /** Our clock was set forward by so much. */
  clockSetForward(byMs: number): void {
    this.#connections.clockSetForward(byMs);
  }

  /** Gives out all that is still open, for a shutdown. */
  flush(): void {
    this.#joiner.flush();
  }

  /** Every connection in use. */
  connections(): Iterable<UpstreamConnection> {
    return this.#connections.connections();
  }

  /** Every connection that is or may still be open, as of now: what is done with them may end some. */
  held(): UpstreamConnection[] {
    return [...this.#connections.connections(), ...this.#connections.parked()];
  }

  /**
   * The connections in use that may be pins, judged as of now: all that are not plainly listed, and of those that were
   * not at the last call the ones that `also` names. Much cheaper than the board where most are listed.
   */
  suspects(also: (connection: UpstreamConnection) => boolean): BoardRow[] {
    const view = this.#options.view();
    return pinBoard(this.#suspects.find(view, also), view, this.#options.now());
  }

  /** Every connection in use, judged as of now. */
  board(): BoardRow[] {
    return pinBoard(this.#connections.connections(), this.#options.view(), this.#options.now());
  }

  /** Every connection that may still be open though nothing was heard of it lately, judged as of now. */
  parked(): BoardRow[] {
    return pinBoard(this.#connections.parked(), this.#options.view(), this.#options.now());
  }

  /** Takes over connections that an earlier run of this process held. */
  restore(connections: Parameters<ConnectionTable['restore']>[0]): void {
    this.#connections.restore(connections);
  }

  /** Its proxy says that it is no longer there. */
  gone(connection: UpstreamConnection): void {
    this.#connections.gone(connection);
  }

  #judge(exchange: Exchange, streamId: number): void {
    const clock = this.#streams.get(streamId)?.clock ?? unknownClock;
    const reporter = this.#options.reporterOf(exchange.reporter, exchange.cluster);
    const attempt = judgedAttempt(exchange);
    const pin = attempt && this.#pin(attempt, exchange, clock);
    const verdict = judgeExchange(exchange, this.#options.rule(exchange.cluster), pin);
    if (exchange.attemptCountMismatch) this.#sink.attemptCountMismatch();
    const reported = { ...exchange, reporter };
    this.#sink.exchange({ exchange: reported, verdict, chain: this.#chains.of(reported, verdict) });
  }

  /** The pin as it was when the attempt ended, by all that discovery knows by now. */
  #pin(attempt: Attempt, exchange: Exchange, clock: ClockMapping): PinVerdict {
    const cluster = attempt.cluster ?? exchange.cluster;
    return judgePin({
      view: cluster === undefined ? undefined : this.#options.view().cluster(cluster, exchange.reporter.nodeId),
      endpoint: attempt.peer,
      connectionOpenedMs: openedMs(attempt, clock),
      requestStartMs: exchange.startMs + clock.offsetMs,
      nowMs: endedMs(attempt, clock, this.#options.now()),
      clockUncertaintyMs: clock.uncertaintyMs,
    });
  }

  #http(stream: RecordedStream, entry: LogEntry, receivedMs: number): void {
    this.#joiner.add(stream, entry, receivedMs);
    this.#chains.heard(entry, this.#options.reporterOf(stream.reporter, entry.cluster), receivedMs);
    const ended = entry.type === 'upstream_end';
    if (!ended && entry.type !== 'upstream_periodic') return;
    if (ended) this.#tried(entry);
    // Not at the exchange's closing: a linger later the connection may have gone again. A mirror's counts too: what it
    // is sent to must not be shut down unseen.
    const seen = this.#connection(stream, entry, receivedMs);
    if (seen === undefined || (isSilentTunnel(seen.peer, entry.code) && !this.#connections.knows(seen))) return;
    const beganOnThisStream = (entry.startMs ?? 0) >= (this.#streams.get(stream.id)?.openedMs ?? 0);
    const isShort = ended && (entry.durationMs ?? 0) < periodicMs;
    this.#heard(seen, entry, { ended, countsFromStart: beganOnThisStream || isShort });
    if (entry.closesConnection) this.#connections.closed(stream.id, seen.connectionId, entry.closedBy);
  }

  #tcp(stream: RecordedStream, entry: LogEntry, receivedMs: number): void {
    const connection = tcpConnection(stream, entry, this.#options.reporterOf(stream.reporter, entry.cluster));
    const ended = connection?.phase === 'ended';
    if (connection !== undefined && ended) this.#sink.tcpEnd(connection, judgeTcpEnd(connection));
    const seen = this.#connection(stream, entry, receivedMs);
    if (seen === undefined) {
      if (ended) this.#tried(entry);
      return;
    }
    // What flowed before the first entry that we saw is nobody's: it may have flowed before the endpoint left.
    if (this.#heard(seen, entry, { ended: false, countsFromStart: false })) this.#tried(entry);
    if (entry.closesConnection) this.#connections.closed(stream.id, seen.connectionId, entry.closedBy);
  }

  /** Whether the connection was not known before. */
  #heard(seen: ConnectionSeen, entry: LogEntry, how: { ended: boolean; countsFromStart: boolean }): boolean {
    const bytes = entry.bytesSent + entry.bytesReceived;
    const { connection, newBytes, isNew } = this.#connections.heard(seen, { key: entry.key ?? '', bytes, ...how });
    // A table that is full may have let go of it at once.
    if (!this.#suspects.update(connection) && this.#connections.isInUse(connection)) this.#suspects.add(connection);
    const moved = { requests: how.ended ? 1 : 0, bytes: newBytes };
    if (moved.requests + moved.bytes > 0) {
      const verdict = judgeConnection(connection, this.#options.view(), connection.lastUsedMs);
      this.#sink.connectionUse(connection, moved, verdict);
    }
    if (isNew) this.#sink.connectionOpened(connection);
    return isNew;
  }

  #tried({ cluster, upstream }: LogEntry): void {
    if (cluster !== undefined && upstream !== undefined) this.#sink.endpointTried(cluster, upstream);
  }

  #connection(stream: RecordedStream, entry: LogEntry, receivedMs: number): ConnectionSeen | undefined {
    return connectionOf(entry, {
      streamId: stream.id,
      reporter: this.#options.reporterOf(stream.reporter, entry.cluster),
      clock: this.#streams.get(stream.id)?.clock ?? unknownClock,
      receivedMs,
    });
  }

  #judgeNow(connection: UpstreamConnection): PinVerdict {
    return judgeConnection(connection, this.#options.view(), this.#options.now());
  }
}
