import { describe, expect, it } from 'vitest';
import { type BlindReason, type DrainFacts, type DrainState } from '../../src/judge/drain-facts.ts';
import { judgeDrained } from '../../src/judge/drained.ts';
import {
  drainFacts,
  endpointFacts,
  heldConnection,
  hour,
  minute,
  nowMs,
  replicaFacts,
  reporterFacts,
} from '../support/drain-facts.ts';
import { cart, shop } from '../support/fake-replica.ts';

type Row = [name: string, facts: Partial<DrainFacts>, state: DrainState];

const open = heldConnection({ state: 'open' });
const expired = heldConnection({ mayBeOpenUntilMs: nowMs });
const withHolders = (...holders: DrainFacts['endpoints'][number]['holders']) => ({
  endpoints: [endpointFacts({ holders })],
});
const withEndpoint = (over: Parameters<typeof endpointFacts>[0]) => ({ endpoints: [endpointFacts(over)] });

describe('the state', () => {
  it.each<Row>([
    ['nothing there', {}, 'drained'],
    ['last used exactly the quiet time ago', withEndpoint({ lastUsedMs: nowMs - minute }), 'drained'],
    ['never used, and left long ago', withEndpoint({ lastUsedMs: undefined }), 'drained'],
    ['an idle connection whose time is over', withHolders(expired), 'drained'],
    ['an idle connection', withHolders(heldConnection()), 'may_be_open'],
    ['an unseen one', withHolders(heldConnection({ state: 'unseen' })), 'may_be_open'],
    ['an idle one without a limit', withHolders(heldConnection({ mayBeOpenUntilMs: undefined })), 'may_be_open'],
    ['one that was forgotten', withEndpoint({ forgottenUntilMs: nowMs + 1 }), 'may_be_open'],
    ['one that was forgotten, and its time is over', withEndpoint({ forgottenUntilMs: nowMs }), 'drained'],
    ['an open one whose time is over', withHolders({ ...open, mayBeOpenUntilMs: nowMs - 1 }), 'in_use'],
    ['used less than the quiet time ago', withEndpoint({ lastUsedMs: nowMs - minute + 1 }), 'in_use'],
    ['left less than the quiet time ago', withEndpoint({ leftAtMs: nowMs - 1000 }), 'in_use'],
    ['left, and inside its grace', withEndpoint({ graceEndsMs: nowMs + 1 }), 'in_use'],
    ['left, and its grace is over', withEndpoint({ graceEndsMs: nowMs }), 'drained'],
    ['listed', withEndpoint({ state: 'listed' }), 'still_listed'],
    ["in a proxy's own list", withEndpoint({ listedBy: ['node-1'] }), 'still_listed'],
    [
      'in the own list of one that is gone',
      { ...withEndpoint({ listedBy: ['node-1'] }), ignored: ['node-1'] },
      'drained',
    ],
    ['listed, and in use', { endpoints: [endpointFacts({ state: 'listed', holders: [open] })] }, 'still_listed'],
    ['of two endpoints one is in use', { endpoints: [endpointFacts(), ...withHolders(open).endpoints] }, 'in_use'],
    ['a name of which nothing has left', { endpoints: [], nameIsKnown: true }, 'still_listed'],
    ['in use, and something is hidden', { ...withHolders(open), reporters: [] }, 'in_use'],
    ['quiet, and something is hidden', { ...withHolders(heldConnection()), reporters: [] }, 'blind'],
    ['nobody was asked', { replicas: [], endpoints: [] }, 'blind'],
  ])('%s', (_, facts, state) => {
    expect(judgeDrained(drainFacts(facts)).state).toBe(state);
  });
});

describe('what hides the truth', () => {
  const reasons = (facts: Partial<DrainFacts>): BlindReason[] =>
    judgeDrained(drainFacts(facts)).blind.map(({ reason }) => reason);
  const used = { endpoints: [endpointFacts({ users: [shop] })] };
  const started = (startedMs: number) => ({ replicas: [replicaFacts({ startedMs })] });

  it.each<[name: string, facts: Partial<DrainFacts>, reasons: BlindReason[]]>([
    ['nothing', used, []],
    ['no reporter', { reporters: [] }, ['no_reporter']],
    ['only one without a log stream', { reporters: [reporterFacts({ connected: false })] }, ['no_reporter']],
    [
      'a silent one that did not use it',
      { reporters: [reporterFacts(), reporterFacts({ reporter: cart, connected: false })] },
      [],
    ],
    ['a silent one that used it', { ...used, reporters: [reporterFacts({ reporter: cart })] }, ['reporter_silent']],
    [
      'a silent one that held a connection',
      { ...withHolders(expired), reporters: [reporterFacts({ reporter: cart })] },
      ['reporter_silent'],
    ],
    [
      'a config that does not flush',
      { reporters: [reporterFacts({ configVersion: 1 })] },
      ['long_requests_not_flushed'],
    ],
    [
      'the same, gone',
      { reporters: [reporterFacts(), reporterFacts({ reporter: cart, configVersion: 1, connected: false })] },
      [],
    ],
    [
      'a proxy that only tags',
      { reporters: [reporterFacts(), reporterFacts({ reporter: cart, profile: 'tag', connected: false })] },
      ['long_requests_not_flushed'],
    ],
    [
      'one that tagged two hours ago',
      {
        reporters: [reporterFacts(), reporterFacts({ reporter: cart, profile: 'tag', lastEntryMs: nowMs - 2 * hour })],
      },
      [],
    ],
    ['all that should report do', { expected: { missing: [], unknown: undefined } }, []],
    [
      'one that should report and never did',
      { expected: { missing: [{ namespace: 'web', pod: 'late-1' }], unknown: undefined } },
      ['reporter_missing'],
    ],
    [
      'the same, said to be gone',
      { expected: { missing: [{ namespace: 'web', pod: 'late-1' }], unknown: undefined }, ignored: ['late-1'] },
      [],
    ],
    [
      'the list of those that should report is old',
      { expected: { missing: [], unknown: { subject: 'web app=shop', error: '401' } } },
      ['expected_unknown'],
    ],
    ['nobody knows it', { endpoints: [] }, ['source_blind']],
    ['no source', withEndpoint({ state: 'unknown', reason: 'no_source' }), ['source_blind']],
    [
      'a source that does not list it, though connections are older than it',
      withEndpoint({ state: 'unknown', reason: 'older_than_view' }),
      [],
    ],
    [
      'a replica that is away',
      {
        replicas: [
          replicaFacts(),
          replicaFacts({ name: 'two', problem: { reason: 'replica_unreachable', detail: '' } }),
        ],
      },
      ['replica_unreachable'],
    ],
    ['a cut answer', { replicas: [replicaFacts({ truncated: true })] }, ['truncated']],
    ['a replica younger than the quiet time', started(nowMs - minute + 1), ['replica_restarted']],
    ['a replica as old as the quiet time', started(nowMs - minute), []],
    ['one that began after the endpoint left, and knows of it', started(nowMs - 9 * minute), []],
    [
      'one that began after the endpoint left, and does not',
      { ...started(nowMs - 9 * minute), ...withEndpoint({ knownTo: [] }) },
      ['replica_restarted'],
    ],
    [
      'one that began before it left, and has never heard of it',
      { ...started(nowMs - 11 * minute), ...withEndpoint({ knownTo: [] }) },
      [],
    ],
    [
      'one that began an idle timeout ago',
      { ...started(nowMs - hour), ...withEndpoint({ knownTo: [], leftAtMs: undefined }) },
      [],
    ],
    [
      'a gap that ended lately',
      { gaps: [{ reason: 'reporter_silent', subject: 'shop-1', endedMs: nowMs - 1000 }] },
      ['reporter_silent'],
    ],
    [
      'a gap that ended long ago',
      { gaps: [{ reason: 'reporter_silent', subject: 'shop-1', endedMs: nowMs - minute }] },
      [],
    ],
  ])('%s', (_, facts, expected) => {
    expect(reasons(facts)).toEqual(expected);
  });

  it('says when that which passes by itself will have passed', () => {
    const [young] = judgeDrained(drainFacts(started(nowMs - 1000))).blind;
    expect(young).toMatchObject({ subject: 'one', passesAtMs: nowMs - 1000 + minute });
    const [missed] = judgeDrained(
      drainFacts({ ...started(nowMs - 9 * minute), ...withEndpoint({ knownTo: [] }) }),
    ).blind;
    expect(missed?.passesAtMs).toBe(nowMs + 51 * minute);
  });

  it('a proxy that is known to be gone hides nothing', () => {
    const gone = { ...used, reporters: [reporterFacts({ connected: false })] };
    expect(reasons(gone)).toEqual(['no_reporter', 'reporter_silent']);
    expect(reasons({ ...gone, ignored: ['shop-1'] })).toEqual([]);
    expect(reasons({ ...gone, ignored: [''] })).toEqual(['no_reporter', 'reporter_silent']);
  });

  it('a source that fails is quoted', () => {
    const [blind] = judgeDrained(
      drainFacts(withEndpoint({ state: 'unknown', reason: 'source_stale', sourceError: 'SERVFAIL' })),
    ).blind;
    expect(blind?.detail).toBe('source_stale: SERVFAIL');
  });
});

describe('how long it was quiet', () => {
  const quietMs = (facts: Partial<DrainFacts>) => judgeDrained(drainFacts(facts)).quietMs;

  it('counts from the last use', () => expect(quietMs({})).toBe(5 * minute));

  it('counts from when it left, where it was not used since', () => {
    expect(quietMs(withEndpoint({ lastUsedMs: nowMs - hour }))).toBe(10 * minute);
  });

  it('never reaches beyond the youngest replica or the last gap', () => {
    expect(quietMs({ replicas: [replicaFacts(), replicaFacts({ startedMs: nowMs - 2000 })] })).toBe(2000);
    expect(quietMs({ gaps: [{ reason: 'no_reporter', subject: '', endedMs: nowMs - 3000 }] })).toBe(3000);
    expect(quietMs({ replicas: [] })).toBe(0);
  });
});

it('a proxy that is said to be gone and has a log stream open is there, and so are its connections', () => {
  const here = heldConnection({ state: 'open' });
  const facts = drainFacts({ endpoints: [endpointFacts({ holders: [here] })], ignored: [here.reporter.nodeId] });
  expect(judgeDrained(facts)).toMatchObject({ state: 'in_use', holders: [here] });
  const gone = { ...facts, reporters: [reporterFacts({ connected: false }), reporterFacts({ reporter: cart })] };
  expect(judgeDrained(gone)).toMatchObject({ state: 'drained', holders: [] });
});
