import { describe, expect, it } from 'vitest';
import { Joiner, type JoinStream } from '../../src/assemble/joiner.ts';
import type { Exchange } from '../../src/model/exchange.ts';
import type { JoinEvent } from '../../src/model/join-event.ts';
import type { LogEntry } from '../../src/model/log-entry.ts';
import { downstreamEnd, reporter, tunnelled, upstreamEnd } from '../support/entries.ts';

const stream: JoinStream = { id: 1, profile: 'observe', reporter };
const refused = { startMs: 1000, durationMs: 2, code: undefined, flags: ['UF'] } as const;

function setUp(overrides: Partial<ConstructorParameters<typeof Joiner>[0]> = {}) {
  const exchanges: Exchange[] = [];
  const counts: Partial<Record<JoinEvent, number>> = {};
  const options = { lingerMs: 2000, maxWaitMs: 60_000, maxExchanges: 100, maxAttempts: 8, ...overrides };
  const joiner = new Joiner(options, {
    exchange: (exchange) => exchanges.push(exchange),
    count: (event) => {
      counts[event] = (counts[event] ?? 0) + 1;
    },
  });
  const feed = (entries: LogEntry[], nowMs = 0, on = stream) => {
    for (const entry of entries) joiner.add(on, entry, nowMs);
  };
  return { joiner, exchanges, counts, feed };
}

describe('joining', () => {
  it('gives one exchange for two attempts and an end, numbered by start', () => {
    const { joiner, exchanges, feed } = setUp();
    feed([upstreamEnd({ startMs: 1030 }), upstreamEnd(refused), downstreamEnd({ attemptCount: 2, durationMs: 40 })]);
    joiner.advance(2000);
    expect(exchanges).toHaveLength(1);
    expect(exchanges[0]).toMatchObject({ key: 'k1', incomplete: undefined, delivered: 1, attemptCount: 2 });
    expect(exchanges[0]?.attempts.map((attempt) => [attempt.number, attempt.startMs])).toEqual([
      [1, 1000],
      [2, 1030],
    ]);
  });

  it('waits a linger for an attempt whose entry follows the end', () => {
    const { joiner, exchanges, feed } = setUp();
    feed([downstreamEnd({ flags: ['DC'], code: undefined, codeDetails: 'downstream_remote_disconnect' })]);
    joiner.advance(1999);
    expect(exchanges).toEqual([]);
    feed([upstreamEnd({ code: undefined })], 1999);
    joiner.advance(2000);
    expect(exchanges[0]?.attempts).toHaveLength(1);
    expect(joiner.size).toBe(0);
  });

  it('counts an entry that comes after the closing as late, and opens nothing', () => {
    const { joiner, exchanges, counts, feed } = setUp();
    feed([upstreamEnd(), downstreamEnd()]);
    joiner.advance(2000);
    feed([upstreamEnd({ startMs: 1500 })], 3000);
    expect(counts).toEqual({ late: 1 });
    expect(joiner.size).toBe(0);
    expect(exchanges).toHaveLength(1);
  });

  it('takes a doubled entry once', () => {
    const { joiner, exchanges, counts, feed } = setUp();
    feed([upstreamEnd(), upstreamEnd(), downstreamEnd(), downstreamEnd()]);
    joiner.advance(2000);
    expect(exchanges[0]).toMatchObject({ attemptCount: 1, attempts: [{ number: 1 }] });
    expect(counts).toEqual({ doubled: 2 });
  });

  it('takes a mirror for no attempt', () => {
    const { joiner, exchanges, counts, feed } = setUp();
    feed([upstreamEnd({ downstreamRemote: undefined, startMs: 999 }), upstreamEnd(), downstreamEnd()]);
    joiner.advance(2000);
    expect(exchanges[0]?.attempts).toHaveLength(1);
    expect(counts).toEqual({ mirror: 1 });
  });

  it('goes on over an internal redirect, whose two ends have one key', () => {
    const { joiner, exchanges, feed } = setUp();
    feed([downstreamEnd({ code: 302, codeDetails: 'internal_redirect', durationMs: 5 })]);
    joiner.advance(50_000);
    expect(exchanges).toEqual([]);
    feed([upstreamEnd({ code: 302, startMs: 1001 }), upstreamEnd({ startMs: 1006 })], 50_000);
    feed([downstreamEnd({ startMs: 1005, durationMs: 20 })], 50_000);
    joiner.advance(52_000);
    expect(exchanges).toHaveLength(1);
    expect(exchanges[0]).toMatchObject({
      startMs: 1000,
      durationMs: 25,
      redirects: 1,
      code: 200,
      attemptCount: 2,
      delivered: 1,
    });
  });

  it('says attempts_missing where Envoy counted more than came', () => {
    const { joiner, exchanges, feed } = setUp();
    feed([upstreamEnd(), downstreamEnd({ attemptCount: 3 })]);
    joiner.advance(2000);
    expect(exchanges[0]?.incomplete).toBe('attempts_missing');
  });

  it('lets the entries decide where the attempt header says 1 and Envoy counts 3', () => {
    const { joiner, exchanges, feed } = setUp();
    feed([1000, 1010, 1020].map((startMs) => upstreamEnd({ startMs })));
    feed([downstreamEnd({ attemptCount: 3, tags: { attemptCountHeader: 1 } })]);
    joiner.advance(2000);
    expect(exchanges[0]).toMatchObject({ attemptCountMismatch: true, incomplete: undefined, attempts: [{}, {}, {}] });
  });

  it('needs no entry for the try that found no host', () => {
    const { joiner, exchanges, feed } = setUp();
    feed([
      upstreamEnd({ code: 503 }),
      downstreamEnd({ code: 503, flags: ['UH'], codeDetails: 'no_healthy_upstream', attemptCount: 2 }),
    ]);
    joiner.advance(2000);
    expect(exchanges[0]).toMatchObject({ incomplete: undefined, delivered: undefined, attempts: [{ code: 503 }] });
  });

  it('takes a try without a peer for no attempt', () => {
    const { joiner, exchanges, feed } = setUp();
    feed([
      upstreamEnd({ upstream: undefined, code: undefined, flags: ['UO'] }),
      downstreamEnd({
        upstream: undefined,
        code: 503,
        flags: ['UO'],
        codeDetails: 'upstream_reset_before_response_started{overflow}',
      }),
    ]);
    joiner.advance(2000);
    expect(exchanges[0]).toMatchObject({ attempts: [], incomplete: undefined });
  });

  it('gives up on an end that never comes, and says so', () => {
    const { joiner, exchanges, counts, feed } = setUp();
    feed([upstreamEnd()]);
    joiner.advance(59_999);
    expect(exchanges).toEqual([]);
    joiner.advance(60_000);
    expect(exchanges[0]?.incomplete).toBe('end_not_seen');
    expect(counts).toEqual({ expired: 1 });
  });

  it('keeps one key of two streams apart', () => {
    const { joiner, exchanges, feed } = setUp();
    feed([upstreamEnd(), downstreamEnd()]);
    feed([upstreamEnd(), downstreamEnd()], 0, { ...stream, id: 2 });
    joiner.advance(2000);
    expect(exchanges.map((exchange) => exchange.attempts.length)).toEqual([1, 1]);
  });

  it('counts an entry without a key and goes on', () => {
    const { joiner, exchanges, counts, feed } = setUp();
    feed([upstreamEnd({ key: undefined }), upstreamEnd(), downstreamEnd()]);
    joiner.advance(2000);
    expect(exchanges).toHaveLength(1);
    expect(counts).toEqual({ keyless: 1 });
  });

  it('gives out at once what Envoy refused before it set the key', () => {
    const { exchanges, counts, feed } = setUp();
    feed([
      downstreamEnd({
        key: undefined,
        upstream: undefined,
        code: 400,
        codeDetails: 'http1.codec_error',
        attemptCount: 0,
      }),
    ]);
    expect(exchanges).toMatchObject([{ code: 400, attempts: [], incomplete: undefined }]);
    expect(counts).toEqual({ keyless: 1 });
  });
});

describe('when a stream ends', () => {
  it('closes what has its end at once', () => {
    const { joiner, exchanges, feed } = setUp();
    feed([upstreamEnd(), downstreamEnd()]);
    joiner.endStream(1, 10);
    expect(exchanges[0]?.incomplete).toBeUndefined();
  });

  it('hands what waits to the stream that the same Envoy opens next', () => {
    const { joiner, exchanges, counts, feed } = setUp();
    feed([upstreamEnd(refused)]);
    joiner.endStream(1, 10);
    feed([upstreamEnd({ startMs: 1030 }), downstreamEnd({ attemptCount: 2 })], 20, { ...stream, id: 2 });
    joiner.advance(2020);
    expect(exchanges).toHaveLength(1);
    expect(exchanges[0]).toMatchObject({ incomplete: undefined, attempts: [{ number: 1 }, { number: 2 }] });
    expect(counts).toEqual({ orphaned: 1, adopted: 1 });
  });

  it('takes an attempt that comes on the next stream after its exchange has closed for late: it opens no second one', () => {
    const { joiner, exchanges, counts, feed } = setUp();
    feed([downstreamEnd({ flags: ['DC'], code: undefined, codeDetails: 'downstream_remote_disconnect' })]);
    joiner.endStream(1, 10);
    feed([upstreamEnd({ code: undefined, flags: ['DC'] })], 20, { ...stream, id: 2 });
    joiner.advance(90_000);
    expect(exchanges.map(({ incomplete }) => incomplete)).toEqual(['attempts_missing']);
    expect(counts).toEqual({ late: 1 });
  });

  it('says stream_ended where nobody takes it', () => {
    const { joiner, exchanges, feed } = setUp();
    feed([upstreamEnd(refused)]);
    joiner.endStream(1, 10);
    joiner.advance(60_010);
    expect(exchanges[0]?.incomplete).toBe('stream_ended');
  });
});

describe('bounds', () => {
  it('lets the oldest go as unknown when the table is full', () => {
    const { joiner, exchanges, counts, feed } = setUp({ maxExchanges: 2 });
    feed([upstreamEnd({ key: 'a' }), upstreamEnd({ key: 'b' }), upstreamEnd({ key: 'c' })]);
    expect(joiner.size).toBe(2);
    expect(exchanges.map((exchange) => [exchange.key, exchange.incomplete])).toEqual([['a', 'evicted']]);
    expect(counts).toEqual({ evicted: 1 });
  });

  it('refuses attempts over the bound, counted, and then knows that some are missing', () => {
    const { joiner, exchanges, counts, feed } = setUp({ maxAttempts: 2 });
    feed([1, 2, 3].map((startMs) => upstreamEnd({ startMs })));
    feed([downstreamEnd({ startMs: 0, attemptCount: 3 })]);
    joiner.advance(2000);
    expect(exchanges[0]).toMatchObject({ incomplete: 'attempts_missing', attempts: [{}, {}] });
    expect(counts).toEqual({ refused: 1 });
  });

  it('shows the peer that Envoy tried, whatever its kind', () => {
    const { joiner, exchanges, feed } = setUp();
    const upstream = tunnelled('10.0.0.7:8080');
    feed([upstreamEnd({ upstream }), downstreamEnd({ upstream })]);
    joiner.advance(2000);
    expect(exchanges[0]).toMatchObject({ delivered: 0, attempts: [{ peer: { ip: '10.0.0.7', kind: 'internal' } }] });
  });

  it('names no connection for an attempt through a tunnel of which nothing came back', () => {
    const { joiner, exchanges, feed } = setUp();
    const upstream = tunnelled('10.0.0.7:8080');
    feed([
      upstreamEnd({ upstream, startMs: 1000, code: undefined, flags: ['UC'] }),
      upstreamEnd({ upstream, startMs: 1010 }),
      downstreamEnd({ upstream, attemptCount: 2 }),
    ]);
    joiner.advance(2000);
    const [silent, answered] = exchanges[0]?.attempts ?? [];
    expect([silent?.connectionId, silent?.connectionAgeMs]).toEqual([undefined, undefined]);
    expect([answered?.connectionId, answered?.connectionAgeMs]).toEqual(['7', 500]);
  });
});

describe('our clock that was set back', () => {
  const hour = 3_600_000;

  it('holds an ended exchange for a linger more, not until the clock is where it was', () => {
    const { joiner, exchanges, feed } = setUp();
    feed([upstreamEnd(), downstreamEnd()], hour);
    joiner.advance(hour);
    joiner.advance(250);
    expect(exchanges).toEqual([]);
    joiner.advance(2250);
    expect(exchanges).toHaveLength(1);
  });

  it('closes what ended after it, though an older exchange is before it in the queue', () => {
    const { joiner, exchanges, feed } = setUp();
    feed([upstreamEnd({ key: 'old' }), downstreamEnd({ key: 'old' })], hour);
    joiner.advance(hour);
    feed([upstreamEnd({ key: 'new' }), downstreamEnd({ key: 'new' })], 100);
    joiner.advance(250);
    joiner.advance(2250);
    expect(exchanges.map(({ key }) => key)).toEqual(['old', 'new']);
  });

  it('gives up on an end, and on an orphan, after the longest wait more', () => {
    const { joiner, exchanges, feed } = setUp();
    feed([upstreamEnd({ key: 'orphan' })], hour, { ...stream, id: 2 });
    joiner.endStream(2, hour);
    feed([upstreamEnd({ key: 'waiting' })], hour);
    joiner.advance(hour);
    joiner.advance(250);
    joiner.advance(60_249);
    expect(exchanges).toEqual([]);
    joiner.advance(60_250);
    expect(exchanges.map(({ key, incomplete }) => [key, incomplete])).toEqual([
      ['waiting', 'end_not_seen'],
      ['orphan', 'stream_ended'],
    ]);
  });
});
