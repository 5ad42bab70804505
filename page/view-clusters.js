import { spark } from './draw.js';
import { count, duration, percent, plural } from './format.js';
import { empty, fits, pageOf, pager, scrollTable, sortHeader } from './parts.js';
import { h } from './preact.js';
import { ratesOf } from './rates.js';
import { causeWords, spaced } from './words.js';

/** Columns that can be sorted by: what a row is worth in each, the largest first. */
const orders = {
  worst: ({ rates }) => rates.maskedCount + rates.failedCount + rates.abortedCount,
  name: undefined,
  requests: ({ rates }) => rates.all,
  effective: ({ rates }) => 1 - (rates.effective ?? 1),
  'first-try': ({ rates }) => 1 - (rates.firstTry ?? 1),
  actual: ({ rates }) => 1 - (rates.actual ?? 1),
  masked: ({ rates }) => rates.masked ?? 0,
  cost: ({ rates }) => rates.maskedTotalMs,
  amplification: ({ rates }) => rates.amplification ?? 0,
  aborted: ({ rates }) => rates.aborted ?? 0,
};

/** The rows of this page, sorted and filtered: what is drawn, and whose history is asked for. */
export function clusterRows({ parts, address }) {
  const counts = (row) => (address.span === 'start' ? row.total : row.recent);
  const rows = (parts.clusters?.rows ?? [])
    .filter((row) => fits(address.q, [row.cluster, row.reporterKind]))
    .map((row) => ({ ...row, rates: ratesOf(counts(row)), causes: counts(row).causes ?? {} }));
  const order = orders[address.sort || 'worst'];
  const byName = (a, b) =>
    String(a.cluster).localeCompare(String(b.cluster)) || a.reporterKind.localeCompare(b.reporterKind);
  const sorted = rows.toSorted((a, b) => (order === undefined ? 0 : order(b) - order(a)) || byName(a, b));
  return pageOf(sorted, address.page);
}

/** Whether success is real: what the client saw, what it would have seen without retries, and per attempt. */
export function clustersView(state) {
  const { parts, address, go } = state;
  if (parts.clusters === undefined) return empty('Waiting for the first counts.');
  const page = clusterRows(state);
  const span = (name, text) =>
    h(
      'button',
      { type: 'button', 'aria-pressed': String(address.span === name), onClick: () => go({ span: name, page: 0 }) },
      text,
    );
  return [
    h(
      'div',
      { class: 'tools' },
      h('h2', null, 'Clusters'),
      h(
        'div',
        { class: 'choice', role: 'group', 'aria-label': 'Time span' },
        span('recent', 'last 15 min'),
        span('start', 'since start'),
      ),
      legend(),
    ),
    page.total === 0 ? nothing(parts.clusters.rows.length, address.q) : table(page.rows, state),
    pager(page, state),
    parts.clusters.truncated
      ? h('p', { class: 'note' }, 'There are more clusters than are shown: those heard of last are here.')
      : null,
  ];
}

function legend() {
  const item = (name, text) => h('span', null, h('i', { class: `key k-${name}`, 'aria-hidden': 'true' }), text);
  return h(
    'div',
    { class: 'legend' },
    item('good', 'at first try (bottom)'),
    item('masked', 'masked (middle)'),
    item('failed', 'failed (top)'),
  );
}

function nothing(all, q) {
  if (all > 0) return empty(`No cluster fits “${q}”.`);
  return empty(
    'No request was seen yet.',
    'Attach an Envoy (sidelight attach writes the config), send a request through it, and wait five seconds: Envoy sends its log once a second.',
  );
}

function table(rows, state) {
  const head = (name, text, title) => sortHeader(state, name, text, title);
  const heads = [
    head('name', 'Cluster', 'By name'),
    head('requests', 'Requests', 'All of them, aborted and unknown ones too'),
    head('effective', 'Effective', 'What the client saw'),
    head('first-try', 'First-try', 'What it would have seen without retries'),
    head('actual', 'Actual', 'Attempts that succeeded'),
    head('masked', 'Masked', 'Effective less first-try'),
    head('cost', 'Masked cost', 'What failed attempts added before the winner began'),
    head('amplification', 'Ampl.', 'Attempts per request that had one'),
    head('aborted', 'Aborted', 'The client left first'),
    'Last 15 min',
  ];
  const drawn = rows.map((row) => clusterRow(row, state));
  return scrollTable('Clusters', heads, drawn, 'clusters');
}

function clusterRow(row, { histories, link }) {
  const { rates, cluster, reporterKind } = row;
  const key = `${reporterKind}\n${cluster ?? ''}`;
  return h(
    'tr',
    { key },
    h(
      'th',
      { scope: 'row' },
      link({ view: 'exchanges', q: cluster ?? '', page: 0 }, cluster ?? '(no cluster)', 'name'),
      h('div', { class: 'dim' }, `${spaced(reporterKind)} · ${listingText(row.listing)}`),
    ),
    cell('Requests', count(rates.all), unknownText(rates)),
    rateCell('Effective', 'effective', rates.effective),
    rateCell('First-try', 'first-try', rates.firstTry),
    rateCell('Actual', 'actual', rates.actual),
    h(
      'td',
      { class: 'number', 'data-rate': 'masked', 'data-label': 'Masked' },
      rates.masked > 0 ? maskedCell(rates, row.causes) : percent(rates.masked),
    ),
    rates.maskedMs === undefined
      ? cell('Masked cost', '–')
      : cell('Masked cost', `${duration(rates.maskedMs)} each`, `${duration(rates.maskedTotalMs)} in all`),
    cell('Amplification', rates.amplification === undefined ? '–' : `${rates.amplification.toFixed(2)}×`),
    cell('Aborted', percent(rates.aborted), rates.abortedCount > 0 ? count(rates.abortedCount) : undefined),
    h('td', { 'data-label': 'Last 15 min' }, spark(histories.get(key))),
  );
}

/** `label`: what its column is called, for narrow screens, where there are no columns. */
function cell(label, value, more) {
  return h(
    'td',
    { class: 'number', 'data-label': label },
    value,
    more === undefined ? null : h('div', { class: 'dim' }, more),
  );
}

function unknownText({ unknownCount, retriedCount }) {
  if (retriedCount > 0) return `${count(unknownCount)} unknown, ${count(retriedCount)} retried`;
  return unknownCount > 0 ? `${count(unknownCount)} unknown` : undefined;
}

function listingText(listing) {
  if (listing === undefined) return 'no source';
  return `${plural(listing.listed, 'endpoint')} by ${listing.source}${listing.stale ? ', stale' : ''}`;
}

/** The number, and a bar as long as it. What is below 100 % also has a mark. */
function rateCell(label, name, share) {
  const isLow = share !== undefined && share < 1;
  return h(
    'td',
    { class: 'number rate', 'data-rate': name, 'data-label': label },
    isLow ? h('span', { class: 'low', 'aria-hidden': 'true' }, '▾ ') : null,
    percent(share),
    h(
      'svg',
      { class: 'meter', viewBox: '0 0 100 4', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
      h('rect', { class: 'm-all', width: 100, height: 4 }),
      share === undefined ? null : h('rect', { class: 'm-part', width: share * 100, height: 4 }),
    ),
  );
}

function maskedCell(rates, causes) {
  const by = Object.entries(causes).toSorted(([, a], [, b]) => b - a);
  return [
    h('strong', null, `◐ ${percent(rates.masked)}`),
    h(
      'div',
      { class: 'causes' },
      by
        .slice(0, 3)
        .map(([cause, times]) => h('div', { title: causeWords[cause] }, `${count(times)} ${spaced(cause)}`)),
    ),
  ];
}
