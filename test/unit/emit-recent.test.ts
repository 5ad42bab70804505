import { describe, expect, it } from 'vitest';
import { RecentExchanges } from '../../src/emit/recent.ts';
import { attempt, chain, judged, local, masked, pin, startMs } from '../support/judged.ts';

describe('the recent exchanges', () => {
  it('are those that somebody may ask about', () => {
    const recent = new RecentExchanges(700);
    recent.add(judged(), undefined, 1);
    recent.add(local('client_error', 404), undefined, 2);
    recent.add(local('server_error', 503), undefined, 3);
    recent.add(masked(), 'a'.repeat(32), 4);
    recent.add(judged({ verdict: { pin: pin({ pin: 'stale', leftAtMs: startMs - 1 }) } }), undefined, 5);
    const list = recent.list({ limit: 10 });
    expect(list.map(({ outcome, pin: stale }) => [outcome, stale])).toEqual([
      ['ok', 'stale'],
      ['masked', 'current'],
      ['local', undefined],
    ]);
    expect(recent.list({ outcome: 'masked', limit: 10 })).toEqual([
      expect.objectContaining({
        traceId: 'a'.repeat(32),
        path: '/cart',
        endpoint: '127.0.0.11:8080',
        maskedLatencyMs: 1005,
        attempts: [
          expect.objectContaining({
            endpoint: '127.0.0.12:8080',
            result: 'failed',
            cause: 'connect_failure',
            sent: false,
            offsetMs: 0,
          }),
          expect.objectContaining({ endpoint: '127.0.0.11:8080', result: 'ok', offsetMs: 1005 }),
        ],
      }),
    ]);
  });

  it('are in the trace that the request was in, whether or not spans of it were made', () => {
    const recent = new RecentExchanges(700);
    const [one, other] = ['a'.repeat(32), 'b'.repeat(32)];
    const traceparent = `00-${one}-b7ad6b7169203331-00`;
    recent.add(masked({ exchange: { traceparent } }), undefined, 1);
    recent.add(masked({ exchange: { traceparent } }), one, 2);
    recent.add(masked(), other, 3);
    recent.add(masked(), undefined, 4);
    const found = recent.list({ trace: one, limit: 10 });
    expect(found.map(({ traceId, traced }) => [traceId, traced])).toEqual([
      [one, true],
      [one, false],
    ]);
    expect(recent.list({ limit: 10 }).map(({ traceId }) => traceId)).toEqual([undefined, other, one, one]);
    expect(recent.list({ trace: one, limit: 1 })).toHaveLength(1);
  });

  it('say how the request multiplied, layer by layer, and where its failure came from', () => {
    const recent = new RecentExchanges(700);
    recent.add(judged({ verdict: { outcome: 'exhausted' }, chain }), undefined, 1);
    recent.add(judged({ verdict: { outcome: 'exhausted' } }), undefined, 2);
    expect(recent.list({ limit: 10 }).map((one) => one.chain)).toEqual([
      undefined,
      {
        amplification: 7.67,
        layers: [
          {
            reporterKind: 'sidecar_outbound',
            workload: 'shop',
            namespace: 'default',
            exchanges: 1,
            attempts: 3,
            failed: 1,
          },
          { reporterKind: 'waypoint', workload: 'way', namespace: 'default', exchanges: 3, attempts: 8, failed: 3 },
        ],
        origin: 1,
      },
    ]);
  });

  it('are bounded per outcome, so that a flood of one hides no other', () => {
    const recent = new RecentExchanges(70);
    recent.add(masked(), undefined, 0);
    for (let i = 1; i <= 100; i += 1) {
      const failed = judged({ exchange: { attempts: [attempt()] }, verdict: { outcome: 'failed' } });
      recent.add(failed, undefined, i);
    }
    expect(recent.list({ limit: 1000 })).toHaveLength(11);
    expect(recent.list({ outcome: 'masked', limit: 10 })).toHaveLength(1);
    expect(recent.list({ limit: 3 })).toHaveLength(3);
  });

  it('are none where none are wanted', () => {
    const recent = new RecentExchanges(0);
    recent.add(masked(), undefined, 0);
    expect(recent.list({ limit: 10 })).toEqual([]);
  });
});
