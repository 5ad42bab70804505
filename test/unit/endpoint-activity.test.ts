import { describe, expect, it } from 'vitest';
import { EndpointActivity } from '../../src/endpoints/activity.ts';
import { endpoint } from '../support/entries.ts';

const [a, b, c] = ['127.0.0.11:80', '127.0.0.12:80', '127.0.0.13:80'].map(endpoint) as [
  ReturnType<typeof endpoint>,
  ReturnType<typeof endpoint>,
  ReturnType<typeof endpoint>,
];

function setUp(maxEndpoints = 10) {
  const activity = new EndpointActivity({ windowMs: 1000, maxEndpoints });
  const uses = (nowMs: number) =>
    Array.from(
      activity.uses(nowMs),
      (use) => `${use.cluster} ${use.endpoint.ip} ${use.uses} ${use.lastUsedMs}`,
    ).toSorted();
  return { activity, uses };
}

describe('how much an endpoint is used', () => {
  it('counts per cluster what lies in the window, and remembers the last use beyond it', () => {
    const { activity, uses } = setUp();
    activity.used('app', a, 5000);
    activity.used('app', a, 5500);
    activity.used('other', a, 5500);
    expect(uses(5600)).toEqual(['app 127.0.0.11 2 5500', 'other 127.0.0.11 1 5500']);
    expect(uses(6050)).toEqual(['app 127.0.0.11 1 5500', 'other 127.0.0.11 1 5500']);
    expect(uses(6600)).toEqual(['app 127.0.0.11 0 5500', 'other 127.0.0.11 0 5500']);
  });

  it('counts anew after a pause as long as many windows', () => {
    const { activity, uses } = setUp();
    for (let ms = 0; ms < 1000; ms += 50) activity.used('app', a, ms);
    activity.used('app', a, 50_000);
    expect(uses(50_000)).toEqual(['app 127.0.0.11 1 50000']);
  });

  it('does not count bytes that move as a request, but as a use', () => {
    const { activity, uses } = setUp();
    activity.used('app', a, 5000);
    activity.moved('app', a, 9000);
    activity.moved('app', b, 9000);
    expect(uses(9000)).toEqual(['app 127.0.0.11 0 9000']);
  });

  it('forgets the one unused for longest when there are too many', () => {
    const { activity, uses } = setUp(2);
    for (const one of [a, b, a, c]) activity.used('app', one, 100);
    expect(uses(100)).toEqual(['app 127.0.0.11 2 100', 'app 127.0.0.13 1 100']);
  });

  it('survives our clock being set back: it counts from then on', () => {
    const { activity, uses } = setUp();
    activity.used('app', a, 900_000);
    activity.used('app', a, 1000);
    expect(uses(1000)).toEqual(['app 127.0.0.11 1 1000']);
  });
});
