import { addressOf, readAddress, views } from './address.js';
import { timeOfDay } from './format.js';
import { h, render } from './preact.js';
import { Stream } from './stream.js';
import { clusterRows, clustersView } from './view-clusters.js';
import { coverageBand, coverageView } from './view-coverage.js';
import { endpointsView } from './view-endpoints.js';
import { exchangesView } from './view-exchanges.js';
import { pinsView } from './view-pins.js';

const historyEveryMs = 10_000;
const longestQuery = 1800;
const titles = {
  clusters: 'Clusters',
  pins: 'Pins board',
  endpoints: 'Endpoints',
  exchanges: 'Exchanges',
  coverage: 'Coverage',
};
const drawings = {
  clusters: clustersView,
  pins: pinsView,
  endpoints: endpointsView,
  exchanges: exchangesView,
  coverage: coverageView,
};

/** @type {{ address: Record<string, any>, parts: Record<string, any>, histories: Map<string, any>, opened: Set<string>, newer: any, connection: string, retryAtMs: number | undefined, clock: { theirsMs: number, oursMs: number } | undefined }} */
const state = {
  address: readAddress(),
  /** What came last of each part; only what is shown is kept. */
  parts: {},
  /** Of the clusters on this page. */
  histories: new Map(),
  /** Exchanges that are opened. */
  opened: new Set(),
  /** Exchanges that came while one is open. */
  newer: undefined,
  connection: 'waiting',
  retryAtMs: undefined,
  /** The server's clock, as told last, and when that was by ours. */
  clock: undefined,
};

const stream = new Stream(
  (name, value) => {
    if (name === 'tick') state.clock = { theirsMs: value.nowMs, oursMs: Date.now() };
    else take(name, value);
    drawSoon();
    if (name === 'clusters') void askHistory();
  },
  (connection, retryAtMs) => {
    const isNew = connection !== state.connection;
    state.connection = connection;
    state.retryAtMs = retryAtMs;
    if (isNew) drawSoon();
  },
);

/** What is being read must not move away: while an exchange is open, newer ones wait. */
function take(name, value) {
  if (name === 'exchanges' && state.opened.size > 0) state.newer = value;
  else state.parts = { ...state.parts, [name]: value };
}

function showNewer() {
  state.opened.clear();
  if (state.newer !== undefined) state.parts = { ...state.parts, exchanges: state.newer };
  state.newer = undefined;
  drawSoon();
}

/** What to do next is in the address, and the back button goes back. */
function go(change) {
  const before = state.address;
  state.address = { ...before, ...change };
  const isStep = change.view !== undefined && change.view !== before.view;
  history[isStep ? 'pushState' : 'replaceState'](null, '', addressOf(state.address));
  follow();
}

/** The part that is shown, and coverage, which is on top of each view. */
function follow() {
  const { view } = state.address;
  const { coverage, [view]: shown } = state.parts;
  state.parts = { coverage, [view]: shown };
  if (view !== 'exchanges') {
    state.opened.clear();
    state.newer = undefined;
  }
  stream.listen([...new Set(['coverage', view])]);
  if (view === 'clusters') void askHistory();
  drawSoon();
}

function toggle(key, isOpen) {
  if (state.opened.has(key) === isOpen) return;
  if (isOpen) state.opened.add(key);
  else state.opened.delete(key);
  if (state.opened.size === 0) showNewer();
  drawSoon();
}

let asked = { names: '', atMs: 0 };

/** The sparklines of the rows on this page: asked for when they are new, and every ten seconds. */
async function askHistory() {
  const names = [...new Set(clusterRows(state).rows.map(({ cluster }) => cluster ?? ''))];
  const isOld = Date.now() - asked.atMs > historyEveryMs;
  if (names.length === 0 || (!isOld && names.join('\n') === asked.names)) return;
  asked = { names: names.join('\n'), atMs: Date.now() };
  try {
    const answers = await Promise.all(
      queries(names).map(async (query) => (await fetch(`api/v1/history?${query}`)).json()),
    );
    const all = answers.flatMap(({ clusters }) => clusters ?? []);
    state.histories = new Map(all.map((one) => [`${one.reporterKind}\n${one.cluster ?? ''}`, one]));
    drawSoon();
  } catch {
    // The stream says that the connection is lost; the next counts ask again.
    asked = { names: '', atMs: 0 };
  }
}

/** So many names to a query that its address stays short. */
function queries(names) {
  const all = [];
  for (const name of names) {
    const one = `cluster=${encodeURIComponent(name)}`;
    const last = all.at(-1);
    if (last === undefined || last.length + one.length > longestQuery) all.push(one);
    else all[all.length - 1] = `${last}&${one}`;
  }
  return all;
}

function link(change, text, className) {
  const { address } = state;
  const target = { ...address, ...change };
  const isHere = change.view !== undefined && change.view === address.view;
  return h(
    'a',
    {
      href: addressOf(target),
      class: className,
      'aria-current': isHere ? 'page' : undefined,
      onClick: (event) => {
        // With a modifier the browser opens another tab, as for every link.
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        go(change);
      },
    },
    text,
  );
}

function page() {
  const { address, clock } = state;
  const nowMs = clock === undefined ? Date.now() : clock.theirsMs + (Date.now() - clock.oursMs);
  const shown = { ...state, nowMs, go, link, toggle, showNewer };
  return [
    h('a', { class: 'skip', href: '#content', key: 'skip' }, 'To the content'),
    h(
      'header',
      { class: 'top', key: 'top' },
      h('h1', null, h('img', { src: 'page/icon.svg', alt: '', width: 20, height: 20 }), 'Sidelight'),
      h(
        'nav',
        { 'aria-label': 'Views' },
        views.map((name) =>
          h('span', { key: name }, link({ view: name, page: 0, sort: '', outcome: '' }, tabText(name))),
        ),
      ),
      h(
        'label',
        { class: 'filter' },
        h('span', { class: 'hidden' }, 'Filter'),
        h('input', {
          type: 'search',
          id: 'filter',
          value: address.q,
          placeholder: 'filter: name, address, path   ( / )',
          maxLength: 200,
          spellcheck: false,
          onInput: (event) => go({ q: event.currentTarget.value, page: 0 }),
        }),
      ),
      connectionText(),
    ),
    h('div', { key: 'band' }, coverageBand(shown)),
    h(
      'main',
      { id: 'content', key: 'main', tabIndex: -1, class: state.connection === 'live' ? '' : 'is-old' },
      h('div', { key: address.view }, drawings[address.view](shown)),
    ),
  ];
}

function tabText(name) {
  const counts = state.parts.coverage?.pins.counts ?? {};
  const stale = (counts.stale ?? 0) + (counts.stale_view ?? 0);
  return name === 'pins' && stale > 0 ? `${titles[name]} (${stale} stale)` : titles[name];
}

function connectionText() {
  const { connection, clock } = state;
  const last = clock === undefined ? 'nothing heard yet' : `what is shown is from ${timeOfDay(clock.theirsMs)}`;
  const words = {
    live: ['● live', clock === undefined ? '' : `as of ${timeOfDay(clock.theirsMs)}`],
    waiting: ['○ not connected, trying again', `${last}. Is sidelight serve running at ${location.host}?`],
    paused: ['○ paused', 'this tab is hidden'],
  };
  const [word, more] = words[connection];
  // Not the time: it would be read out every second.
  return h(
    'p',
    { class: `connection is-${connection}` },
    h('strong', { role: 'status' }, word),
    h('span', null, ` ${more}`),
  );
}

let due = 0;

/** Draws before the next frame, however much came. */
function drawSoon() {
  if (due !== 0) return;
  due = requestAnimationFrame(() => {
    due = 0;
    document.title = `${titles[state.address.view]} · Sidelight`;
    render(page(), root);
  });
}

addEventListener('popstate', () => {
  state.address = readAddress();
  follow();
});
addEventListener('keydown', (event) => {
  const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    document.getElementById('filter')?.focus();
  }
});

const root = /** @type {HTMLElement} */ (document.getElementById('page'));
root.replaceChildren();
follow();
