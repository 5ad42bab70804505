import { describe, expect, test } from 'vitest';
import { hostOfCluster } from '../../src/discovery/cluster-host.ts';
import { Departures } from '../../src/discovery/departures.ts';
import { type FamilyAnswer, noFamilies, type Round, readRound } from '../../src/discovery/dns-answer.ts';
import { readServers } from '../../src/discovery/dns-servers.ts';
import { parseEndpointsFile } from '../../src/discovery/endpoints-file.ts';
import { dnsGrace, fileGrace, holdTtl, noTtl } from '../../src/discovery/grace.ts';
import { fail, learn, nothingKnown } from '../../src/discovery/knowledge.ts';
import { holdWindow, openWindow, slideWindow } from '../../src/discovery/window.ts';

describe('the name behind a cluster', () => {
  test.each([
    ['outbound|443||api.example.com', 'api.example.com'],
    ['outbound|443|v2|API.example.com', 'api.example.com'],
    ['outbound|80||pay.shop.svc.cluster.local', undefined],
    ['outbound|80||pay.shop.svc', undefined],
    ['outbound|80||pay.shop.svc.other.org', undefined],
    ['outbound|80||printer.local', undefined],
    ['outbound|443||*.example.com', undefined],
    ['outbound|443||10.0.0.7', undefined],
    ['inbound|8080||', undefined],
    ['inbound-vip|80|http|api.example.com', 'api.example.com'],
    ['inbound-vip|80|http|*.example.com', undefined],
    ['inbound-vip|80|http|pay.shop.svc.cluster.local', undefined],
    ['outbound_.443_._.api.example.com', 'api.example.com'],
    ['PassthroughCluster', undefined],
    ['api.example.com', undefined],
    ['outbound|443|api.example.com', undefined],
  ])('%s: %s', (cluster, host) => {
    expect(hostOfCluster(cluster)).toBe(host);
  });
});

describe('what a round of A and AAAA means', () => {
  const none: FamilyAnswer = { kind: 'none', error: 'ENODATA' };
  const failed: FamilyAnswer = { kind: 'failed', error: 'ESERVFAIL' };
  const a = (...addresses: string[]): FamilyAnswer => ({ kind: 'addresses', addresses, ttlMs: 30_000 });

  /** The last meaning of some rounds. */
  function after(...rounds: Round[]) {
    let families = noFamilies;
    let meaning = readRound(families, { v4: failed, v6: failed });
    for (const round of rounds) {
      meaning = readRound(families, round);
      families = meaning.families;
    }
    return meaning.error ?? meaning.addresses;
  }

  const times = (count: number, round: Round) => Array.from({ length: count }, () => round);
  const bothNone = { v4: none, v6: none };
  const v4Only = { v4: a('10.0.0.1'), v6: none };

  test.each<[string, Round[], readonly string[] | string]>([
    ['both families are merged', [{ v4: a('10.0.0.1'), v6: a('::1') }], ['10.0.0.1', '::1']],
    ['AAAA without data is no harm', [v4Only], ['10.0.0.1']],
    ['AAAA that always fails is no harm', [{ v4: a('10.0.0.1'), v6: failed }], ['10.0.0.1']],
    ['a failed A is a failure', [v4Only, { v4: failed, v6: none }], 'ESERVFAIL'],
    ['a failed A is a failure even if AAAA is good', [v4Only, { v4: failed, v6: a('::1') }], 'ESERVFAIL'],
    [
      'a failed AAAA that had addresses is a failure',
      [
        { v4: a('10.0.0.1'), v6: a('::1') },
        { v4: a('10.0.0.2'), v6: failed },
      ],
      'ESERVFAIL',
    ],
    ['"none" is not believed once', [v4Only, { v4: none, v6: none }], 'ENODATA'],
    ['"none" is believed twice', [v4Only, { v4: none, v6: none }, { v4: none, v6: none }], []],
    ['"none" stays believed', [v4Only, ...times(5, bothNone)], []],
    [
      '"none", a failure and "none" are not twice in a row',
      [v4Only, { v4: none, v6: none }, { v4: failed, v6: none }, { v4: none, v6: none }],
      'ENODATA',
    ],
    [
      'a failure after a believed "none" is a failure',
      [v4Only, ...times(2, bothNone), { v4: failed, v6: none }],
      'ESERVFAIL',
    ],
    [
      'one family that says "none" once keeps its addresses',
      [
        { v4: a('10.0.0.1'), v6: a('::1') },
        { v4: none, v6: a('::1') },
        { v4: a('10.0.0.1'), v6: a('::1') },
      ],
      ['10.0.0.1', '::1'],
    ],
    ['a name that never had an address gives no answer', times(5, bothNone), 'ENODATA'],
  ])('%s', (_name, rounds, expected) => {
    expect(after(...rounds)).toEqual(expected);
  });
});

describe('what several name servers mean', () => {
  const failed = { v4: { kind: 'failed', error: 'ETIMEOUT' }, v6: { kind: 'failed', error: 'ETIMEOUT' } } as const;
  const unknown = { v4: { kind: 'none', error: 'ENOTFOUND' }, v6: { kind: 'none', error: 'ENOTFOUND' } } as const;
  const a = (...addresses: string[]) =>
    ({ v4: { kind: 'addresses', addresses, ttlMs: 1000 }, v6: { kind: 'none', error: 'ENODATA' } }) as const;

  /** The last meaning of some rounds, each of what x and y said. */
  function after(...rounds: [x: Round, y: Round][]) {
    let families: Parameters<typeof readServers>[0] = new Map();
    let meaning = readServers(families, []);
    for (const [x, y] of rounds) {
      meaning = readServers(families, [
        { server: 'x', round: x },
        { server: 'y', round: y },
      ]);
      families = meaning.families;
    }
    const { addresses, doubt, error } = meaning;
    return { addresses, doubt, error };
  }

  test.each<[string, [Round, Round][], ReturnType<typeof after>]>([
    [
      'both are merged',
      [[a('1', '2'), a('2', '3')]],
      { addresses: ['1', '2', '3'], doubt: undefined, error: undefined },
    ],
    [
      'nobody knows the name',
      [[unknown, failed]],
      { addresses: undefined, doubt: undefined, error: 'ENOTFOUND from x, ETIMEOUT from y' },
    ],
    [
      'one fails and holds what it said',
      [
        [a('1'), a('2')],
        [failed, a('3')],
      ],
      { addresses: ['1', '3'], doubt: 'ETIMEOUT from x', error: 'ETIMEOUT from x' },
    ],
    [
      'one that never answered is no reason for doubt',
      [[failed, a('1')]],
      { addresses: ['1'], doubt: undefined, error: 'ETIMEOUT from x' },
    ],
    [
      'one says none, and is believed when it says so twice',
      [
        [a('1'), a('2')],
        [unknown, a('2')],
        [unknown, a('2')],
      ],
      { addresses: ['2'], doubt: undefined, error: undefined },
    ],
  ])('%s', (_name, rounds, expected) => {
    expect(after(...rounds)).toEqual(expected);
  });
});

describe('what a proxy may hold of an answer', () => {
  const longest = (...told: [ttlMs: number, atMs: number][]) =>
    told.reduce((held, [ttlMs, atMs]) => holdTtl(held, ttlMs, atMs), noTtl).longestMs;

  test('the whole TTL, though a caching resolver counts it down', () => {
    expect(longest([60_000, 0], [40_000, 20_000], [1000, 59_000])).toBe(60_000);
    expect(longest([5000, 0], [60_000, 5000])).toBe(60_000);
  });

  test('a TTL that was lowered, when the old one has run out', () => {
    expect(longest([300_000, 0], [30_000, 10_000], [30_000, 300_000])).toBe(300_000);
    expect(longest([300_000, 0], [30_000, 10_000], [30_000, 300_001])).toBe(30_000);
  });
});

describe('a window', () => {
  const grace = { graceMs: 10_000, rotatingGraceMs: 600_000 };
  const windowMs = 60_000;

  /** An endpoint per letter; `-` is a failure. */
  function after(answers: [atMs: number, endpoints: string][], from = openWindow(nothingKnown, windowMs)) {
    return answers.reduce(
      (windowed, [atMs, endpoints]) =>
        endpoints === '-'
          ? holdWindow(windowed, 'ETIMEOUT')
          : slideWindow(windowed, { endpoints: endpoints.split(''), atMs, grace }, windowMs, 10),
      from,
    ).knowledge;
  }

  test('keeps an endpoint listed until its time after the last answer that had it, with its first time', () => {
    const before: [number, string][] = [
      [0, 'ab'],
      [10_000, 'bc'],
      [50_000, 'b'],
    ];
    expect(after([...before, [59_999, 'b']])).toMatchObject({
      listed: new Map([
        ['a', 0],
        ['b', 0],
        ['c', 10_000],
      ]),
      left: Departures.none,
    });
    expect(after([...before, [65_000, 'b']])).toMatchObject({
      listed: new Map([
        ['b', 0],
        ['c', 10_000],
      ]),
      left: new Departures([['a', 60_000]]),
    });
  });

  test('an endpoint that comes back in time never left', () => {
    expect(
      after([
        [0, 'ab'],
        [30_000, 'b'],
        [50_000, 'ab'],
        [100_000, 'b'],
      ]),
    ).toMatchObject({
      listed: new Map([
        ['a', 0],
        ['b', 0],
      ]),
      left: Departures.none,
    });
  });

  test('runs out for nobody while nobody answers, and begins anew then', () => {
    const silent: [number, string][] = [
      [0, 'ab'],
      [10_000, 'b'],
      [20_000, '-'],
      [100_000, '-'],
      [200_000, 'b'],
    ];
    expect(after(silent)).toMatchObject({ left: Departures.none });
    expect(after([...silent, [260_000, 'b']])).toMatchObject({ left: new Departures([['a', 260_000]]) });
  });

  test('has the plain grace, however often answers replace endpoints', () => {
    expect(
      after([
        [0, 'a'],
        [5000, 'b'],
        [10_000, 'c'],
        [70_000, 'd'],
      ]),
    ).toMatchObject({
      left: new Departures([
        ['a', 60_000],
        ['b', 65_000],
        ['c', 70_000],
      ]),
      graceMs: 10_000,
    });
  });

  test('opened later, begins with what left a moment ago', () => {
    const known = [
      [0, 'abc'],
      [5000, 'ab'],
      [61_000, 'b'],
    ].reduce(
      (knowledge, [atMs, endpoints]) =>
        learn(knowledge, { endpoints: String(endpoints).split(''), atMs: Number(atMs), grace }, 10).knowledge,
      nothingKnown,
    );
    const opened = openWindow(known, 50_000);
    expect(opened.knowledge).toMatchObject({
      listed: new Map([
        ['b', 0],
        ['a', 61_000],
      ]),
      left: new Departures([['c', 5000]]),
    });
  });
});

describe('what is known after answers', () => {
  function known(answers: [atMs: number, endpoints: string, graceMs?: number][], maxLeft = 10) {
    return answers.reduce((knowledge, [atMs, endpoints, graceMs = 10_000]) => {
      const grace = { graceMs, rotatingGraceMs: 600_000 };
      return learn(knowledge, { endpoints: endpoints.split(' ').filter(Boolean), atMs, grace }, maxLeft).knowledge;
    }, nothingKnown);
  }

  test('listed since, left at, and came back', () => {
    expect(
      known([
        [1, 'a b'],
        [2, 'b c'],
        [3, 'a c'],
      ]),
    ).toMatchObject({
      firstAnswerMs: 1,
      lastAnswerMs: 3,
      listed: new Map([
        ['a', 3],
        ['c', 2],
      ]),
      left: new Departures([['b', 3]]),
      changes: { added: 2, removed: 2 },
    });
  });

  test('the first answer is no change, a repeated endpoint is one', () => {
    const first = learn(
      nothingKnown,
      { endpoints: ['a', 'a'], atMs: 1, grace: { graceMs: 0, rotatingGraceMs: 0 } },
      10,
    );
    expect(first).toMatchObject({ added: [], removed: [], knowledge: { changes: { added: 0, removed: 0 } } });
    expect([...first.knowledge.listed]).toEqual([['a', 1]]);
    expect(
      learn(first.knowledge, { endpoints: ['b'], atMs: 2, grace: { graceMs: 0, rotatingGraceMs: 0 } }, 10),
    ).toMatchObject({
      added: ['b'],
      removed: ['a'],
    });
  });

  test('a failure empties nothing and is told until the next good answer', () => {
    const before = known([
      [1, 'a'],
      [2, 'b'],
    ]);
    const failed = fail(before, 'ETIMEOUT');
    expect(failed).toEqual({ ...before, lastError: 'ETIMEOUT' });
    expect(
      learn(failed, { endpoints: ['b'], atMs: 3, grace: { graceMs: 0, rotatingGraceMs: 0 } }, 10).knowledge.lastError,
    ).toBeUndefined();
  });

  test('an answer that is not whole is taken in and makes nothing younger', () => {
    const grace = { graceMs: 0, rotatingGraceMs: 0 };
    const before = known([[1, 'a b']]);
    const learned = learn(before, { endpoints: ['b', 'c'], atMs: 5, grace, doubt: 'ETIMEOUT from x' }, 10);
    expect(learned).toMatchObject({ added: ['c'], removed: ['a'] });
    expect(learned.knowledge).toMatchObject({
      lastAnswerMs: 1,
      lastError: 'ETIMEOUT from x',
      left: new Departures([['a', 5]]),
    });
  });

  test('of those that left the oldest is forgotten first', () => {
    expect([
      ...known(
        [
          [1, 'a b c d'],
          [2, 'b c d'],
          [3, 'c d'],
          [4, 'd'],
        ],
        2,
      ).left,
    ]).toEqual([
      ['b', 3],
      ['c', 4],
    ]);
  });

  test('a longer grace of an earlier leaving holds until it is over', () => {
    expect(
      known([
        [0, 'a b'],
        [1000, 'b c', 300_000],
        [2000, 'c', 10_000],
      ]).graceMs,
    ).toBe(300_000);
    expect(
      known([
        [0, 'a b'],
        [1000, 'b c', 300_000],
        [400_000, 'c', 10_000],
      ]).graceMs,
    ).toBe(10_000);
  });

  test('answers that keep replacing endpoints rotate: leaving says little there', () => {
    expect(
      known([
        [0, 'a'],
        [5000, 'b'],
        [10_000, 'c'],
      ]).graceMs,
    ).toBe(600_000);
    expect(
      known([
        [0, 'a b'],
        [5000, 'b c'],
        [10_000, 'c d'],
        [900_000, 'c'],
      ]).graceMs,
    ).toBe(10_000);
  });

  test('a flip, its undoing a minute later, endpoints that only go or only come are no rotation', () => {
    expect(
      known([
        [0, 'a'],
        [5000, 'b'],
      ]).graceMs,
    ).toBe(10_000);
    expect(
      known([
        [0, 'a'],
        [5000, 'b'],
        [65_000, 'a'],
      ]).graceMs,
    ).toBe(10_000);
    expect(
      known([
        [0, 'a b c'],
        [5000, 'b c'],
        [10_000, 'c'],
        [15_000, 'c d'],
        [20_000, 'd'],
      ]).graceMs,
    ).toBe(10_000);
  });
});

test('the grace is TTL + refresh, 10 s at least; 10 min where answers rotate; a file does not rotate', () => {
  expect(dnsGrace(1000, 5000)).toEqual({ graceMs: 10_000, rotatingGraceMs: 600_000 });
  expect(dnsGrace(60_000, 5000)).toEqual({ graceMs: 65_000, rotatingGraceMs: 600_000 });
  expect(dnsGrace(86_400_000, 5000)).toEqual({ graceMs: 86_405_000, rotatingGraceMs: 86_405_000 });
  expect(fileGrace).toEqual({ graceMs: 10_000, rotatingGraceMs: 10_000 });
});

describe('a file of endpoints', () => {
  test('gives the canonical endpoints per cluster', () => {
    const text = 'clusters:\n  a: [10.0.0.1, "10.0.0.2:80", "0:0::1", "[::0001]:443", "::ffff:10.0.0.3"]\n  b: []';
    expect(parseEndpointsFile(text)).toEqual({
      ok: true,
      value: new Map([
        ['a', ['10.0.0.1', '10.0.0.2:80', '::1', '[::1]:443', '10.0.0.3']],
        ['b', []],
      ]),
    });
  });

  test.each([
    ['', 'clusters', 'a mapping of cluster names to lists of endpoints'],
    ['[]', '', 'a mapping with the key clusters'],
    ['clusters:', 'clusters', 'a mapping of cluster names to lists of endpoints'],
    ['clusters: {a: 10.0.0.1}', 'clusters.a', 'a list of endpoints'],
    ['clusters: {a: [a.example]}', 'clusters.a[0]', 'IP, IP:port or [IPv6]:port'],
    ['clusters: {a: [8080]}', 'clusters.a[0]', 'IP, IP:port or [IPv6]:port'],
    ['clutsers: {}', 'clutsers', 'a known key, perhaps clusters'],
  ])('%j is refused at %j', (text, path, expected) => {
    expect(parseEndpointsFile(text)).toMatchObject({
      ok: false,
      problems: expect.arrayContaining([expect.objectContaining({ path, expected })]),
    });
  });
});
