import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type ApiClient, ApiRefusal } from '../../src/discovery/kubernetes/api-client.ts';
import { NamespaceWatch } from '../../src/discovery/kubernetes/namespace-watch.ts';
import { SidelightError } from '../../src/lib/errors.ts';
import { sliceOf } from '../support/slices.ts';

/* One namespace's list and watch, against an API server that says what the test wants. */
beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});
afterEach(() => {
  vi.useRealTimers();
});

/** One watch, as the server sees it. */
interface Watch {
  query: URLSearchParams;
  say(line: unknown): void;
  /** Cleanly, or with an error. */
  end(error?: Error): void;
}

/** A server whose lists are these slices, and whose watches the test speaks for. */
function setUp(pages: (query: URLSearchParams) => unknown = () => list([])) {
  const lists: URLSearchParams[] = [];
  const watches: Watch[] = [];
  const client: ApiClient = {
    async get(path) {
      const query = new URLSearchParams(path.split('?')[1]);
      lists.push(query);
      return pages(query);
    },
    async *lines(path, signal, begun) {
      const lines: unknown[] = [];
      let wake = (): void => undefined;
      let ended: { error: Error | undefined } | undefined;
      const end = (error?: Error) => {
        ended ??= { error };
        wake();
      };
      const say = (line: unknown) => {
        lines.push(line);
        wake();
      };
      signal.addEventListener('abort', () => end(new Error('aborted')));
      watches.push({ query: new URLSearchParams(path.split('?')[1]), say, end });
      begun();
      for (;;) {
        while (lines.length > 0) yield lines.shift();
        if (ended?.error !== undefined) throw ended.error;
        if (ended !== undefined) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
  const seen: { slices: string[]; atMs: number; fromMs: number }[] = [];
  const alive: number[] = [];
  const errors: string[] = [];
  const watch = new NamespaceWatch({
    namespace: 'shop',
    client,
    watchMs: 20_000,
    now: Date.now,
    random: () => 0.5,
    onList: (_, slices, when) => seen.push({ slices: slices.map(({ name }) => name), ...when }),
    onSlice: ({ name }, gone, when) => seen.push({ slices: [gone ? `-${name}` : `+${name}`], ...when }),
    onAlive: (atMs) => alive.push(atMs),
    onError: ({ message }) => errors.push(message),
  });
  const pass = async (ms: number) => vi.advanceTimersByTimeAsync(ms);
  return { watch, lists, watches, seen, alive, errors, pass, last: () => watches.at(-1) as Watch };
}

function list(items: unknown[], more: object = {}) {
  return { metadata: { resourceVersion: '7', ...more }, items };
}

function slice(service: string, name = `${service}-1`, version = '8') {
  const object = sliceOf({ namespace: 'shop', service, name }, [{ ip: '10.0.0.1', uid: 'a' }]);
  return { ...object, metadata: { ...object.metadata, resourceVersion: version } };
}

const expired = { type: 'ERROR', object: { kind: 'Status', code: 410, message: 'too old resource version' } };

describe('what is asked for', () => {
  test('the services that are watched, in one list of pages and one watch that goes on from it', async () => {
    const { watch, lists, pass, last, seen } = setUp((query) =>
      query.has('continue') ? list([slice('b')]) : list([slice('a')], { continue: 'page-2' }),
    );
    watch.add('a');
    watch.add('b');
    await pass(100);
    expect(lists.map((query) => [query.get('labelSelector'), query.get('continue')])).toEqual([
      ['kubernetes.io/service-name in (a,b)', null],
      ['kubernetes.io/service-name in (a,b)', 'page-2'],
    ]);
    expect(Object.fromEntries(last().query)).toEqual({
      labelSelector: 'kubernetes.io/service-name in (a,b)',
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: '7',
      timeoutSeconds: '20',
    });
    expect(seen.map(({ slices }) => slices)).toEqual([['a-1', 'b-1']]);
    watch.stop();
  });

  test('a further service: once, after a while, from a new list', async () => {
    const { watch, lists, watches, pass } = setUp();
    watch.add('a');
    await pass(100);
    watch.add('b');
    watch.add('c');
    await pass(1000);
    expect([lists.length, watches.length]).toEqual([1, 1]);
    await pass(1000);
    expect(lists.map((query) => query.get('labelSelector'))).toEqual([
      'kubernetes.io/service-name in (a)',
      'kubernetes.io/service-name in (a,b,c)',
    ]);
    expect(watches).toHaveLength(2);
    watch.stop();
  });

  test('a list that takes long is not given up for a further service', async () => {
    const { watch, lists, pass, seen } = setUp(async () => {
      await new Promise((resolve) => setTimeout(resolve, 5000));
      return list([]);
    });
    watch.add('a');
    for (let i = 0; i < 6; i += 1) {
      await pass(1000);
      watch.add(`b${i}`);
    }
    expect([lists.length, seen.length]).toEqual([1, 1]);
    await pass(2100);
    expect(lists.at(-1)?.get('labelSelector')).toBe('kubernetes.io/service-name in (a,b0,b1,b2,b3,b4,b5)');
    watch.stop();
  });

  test('of more services than a URL holds everything, and what nobody asked for is dropped', async () => {
    const { watch, pass, last, seen } = setUp(() => list([slice('a1'), slice('other')]));
    for (let i = 0; i < 61; i += 1) watch.add(`a${i}`);
    await pass(100);
    expect(last().query.get('labelSelector')).toBe('kubernetes.io/service-name');
    last().say({ type: 'ADDED', object: slice('other') });
    last().say({ type: 'ADDED', object: slice('a2') });
    await pass(10);
    expect(seen.map(({ slices }) => slices)).toEqual([['a1-1'], ['+a2-1']]);
    watch.stop();
  });
});

describe('a watch that ends', () => {
  test('cleanly, goes on from what was told last, bookmarks too', async () => {
    const { watch, lists, watches, pass, last, errors } = setUp();
    watch.add('a');
    await pass(2000);
    last().say({ type: 'MODIFIED', object: slice('a', 'a-1', '11') });
    last().say({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '12' } } });
    await pass(10);
    last().end();
    await pass(10);
    expect(watches.map(({ query }) => query.get('resourceVersion'))).toEqual(['7', '12']);
    expect([lists.length, errors]).toEqual([1, []]);
    watch.stop();
  });

  test('by a cut, goes on from there, and what is told at once may have happened since the server was last heard', async () => {
    const { watch, pass, last, seen, errors } = setUp();
    watch.add('a');
    await pass(5000);
    last().say({ type: 'ADDED', object: slice('a', 'a-1', '11') });
    await pass(10);
    const heardMs = Date.now() - 10;
    await pass(3000);
    last().end(new Error('connection reset'));
    await pass(500);
    last().say({ type: 'MODIFIED', object: slice('a', 'a-1', '12') });
    await pass(3000);
    last().say({ type: 'MODIFIED', object: slice('a', 'a-1', '13') });
    await pass(10);
    expect(errors).toEqual(['/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices: connection reset']);
    const [, live, resumed, later] = seen;
    expect((live?.atMs ?? 0) - (live?.fromMs ?? 0)).toBe(1000);
    expect(resumed?.fromMs).toBe(heardMs);
    expect((later?.atMs ?? 0) - (later?.fromMs ?? 0)).toBe(1000);
    watch.stop();
  });

  test('because its version is forgotten, lists anew; the server was last heard before that', async () => {
    const { watch, lists, pass, last, seen, errors } = setUp();
    watch.add('a');
    await pass(1500);
    const heardMs = seen[0]?.atMs ?? 0;
    last().end(new Error('cut'));
    await pass(400);
    last().say(expired);
    await pass(600);
    expect([lists.length, errors.length]).toEqual([2, 1]);
    // A second after the first watch began nothing had been missing.
    expect(seen[1]?.fromMs).toBe(heardMs + 1000);
    watch.stop();
  });

  test('that is refused because its version is forgotten, lists anew', async () => {
    const { watch, lists, watches, pass, last } = setUp();
    watch.add('a');
    await pass(100);
    const cause = new ApiRefusal(410, '410 too old resource version');
    last().end(new SidelightError('kubernetes_failed', { cause }));
    await pass(1000);
    expect([lists.length, watches.length]).toEqual([2, 2]);
    watch.stop();
  });

  test('is asked for less and less often while the server fails', async () => {
    const asked: number[] = [];
    const { watch, pass } = setUp(() => {
      asked.push(Date.now());
      throw new Error('down');
    });
    watch.add('a');
    await pass(120_000);
    const pauses = asked.slice(1).map((atMs, i) => atMs - (asked[i] ?? 0));
    expect(pauses.slice(0, 6)).toEqual([375, 750, 1500, 3000, 6000, 11_250]);
    expect(Math.max(...pauses)).toBe(11_250);
    watch.stop();
  });

  test('that does not end when it should is given up', async () => {
    const { watch, watches, pass, errors, alive } = setUp();
    watch.add('a');
    await pass(10_000);
    const before = alive.length;
    await pass(16_000);
    expect(errors).toEqual([expect.stringContaining('the watch did not end after 20 s')]);
    expect(alive.length).toBe(before);
    expect(watches.length).toBe(2);
    watch.stop();
  });
});

test('a proof that nothing is missing is each line, a second without one, and a clean end', async () => {
  const { watch, pass, last, alive } = setUp();
  const proofs = () => alive.splice(0).length;
  watch.add('a');
  await pass(500);
  expect(proofs()).toBe(0);
  await pass(700);
  expect(proofs()).toBe(1);
  last().say({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '9' } } });
  await pass(10);
  expect(proofs()).toBe(1);
  last().end();
  await pass(10);
  expect(proofs()).toBe(1);
  watch.stop();
});
