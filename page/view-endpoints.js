import { changeLine } from './draw.js';
import { count, percent, plural, timeOfDay, wholeDuration } from './format.js';
import { empty, fits, pageOf, pager, scrollTable } from './parts.js';
import { h } from './preact.js';
import { spaced, unknownPinWords } from './words.js';

const shownChangesMs = 15 * 60_000;

/** How evenly the endpoints of each cluster are used, which gave no evidence, and when the lists changed. */
export function endpointsView(state) {
  const { parts, address, nowMs } = state;
  const { endpoints } = parts;
  if (endpoints === undefined) return empty('Waiting for the first look at the endpoints.');
  const rows = endpoints.rows
    .filter((row) => fits(address.q, [row.cluster, row.endpoint, row.subject]))
    .toSorted(
      (a, b) => a.cluster.localeCompare(b.cluster) || b.requests - a.requests || a.endpoint.localeCompare(b.endpoint),
    );
  const page = pageOf(rows, address.page);
  const changes = endpoints.changes.filter(({ cluster, subject }) => fits(address.q, [cluster, subject]));
  return [
    h(
      'div',
      { class: 'tools' },
      h('h2', null, 'Endpoints'),
      h('p', { class: 'dim' }, `Shares of the last ${wholeDuration(endpoints.windowMs)}.`),
    ),
    page.total === 0 ? nothing(endpoints.rows.length, address.q) : table(page.rows, nowMs),
    pager(page, state),
    endpoints.truncated
      ? h('p', { class: 'note' }, 'There are more endpoints than are shown: filter by cluster in /api/v1/endpoints.')
      : null,
    changeList(changes, nowMs),
  ];
}

function nothing(all, q) {
  if (all > 0) return empty(`No endpoint fits “${q}”.`);
  return empty('No endpoint was used or listed yet.', 'They appear with the first request of an attached Envoy.');
}

const columns = ['Endpoint', 'Cluster', 'State', 'Share against fair share', 'Requests', 'Connections', 'Last used'];

function table(rows, nowMs) {
  const drawn = rows.map((row) => endpointRow(row, nowMs));
  return scrollTable('Endpoints', columns, drawn, 'endpoints');
}

function endpointRow(row, nowMs) {
  const { open, idle, unseen } = row.connections;
  return h(
    'tr',
    { key: `${row.cluster}\n${row.endpoint}` },
    h('th', { scope: 'row' }, h('code', null, row.endpoint)),
    h(
      'td',
      null,
      row.cluster,
      h('div', { class: 'dim' }, row.source === undefined ? 'no source' : `${row.source} ${row.subject ?? ''}`),
    ),
    h('td', null, stateText(row, nowMs)),
    h('td', null, shareBar(row)),
    h('td', { class: 'number' }, count(row.requests)),
    h('td', { class: 'number' }, open + idle + unseen === 0 ? '0' : `${open} open, ${idle} idle, ${unseen} unseen`),
    h(
      'td',
      { class: 'number' },
      row.lastUsedMs === undefined ? 'never' : `${wholeDuration(nowMs - row.lastUsedMs)} ago`,
    ),
  );
}

function stateText({ state, reason, leftAtMs, listedSinceMs }, nowMs) {
  switch (state) {
    case 'listed':
      return [
        '● listed',
        h(
          'div',
          { class: 'dim', key: 'more' },
          listedSinceMs === undefined ? '' : `for ${wholeDuration(nowMs - listedSinceMs)}`,
        ),
      ];
    case 'left':
      return [
        h('strong', { key: 'word' }, '▽ left'),
        h('div', { class: 'dim', key: 'more' }, `${wholeDuration(nowMs - leftAtMs)} ago`),
      ];
    case 'unlisted':
      return '○ never listed';
    default:
      return [
        '? unknown',
        h('div', { class: 'dim', key: 'more' }, h('span', { title: unknownPinWords[reason] }, spaced(reason ?? ''))),
      ];
  }
}

/** The share as a bar, the fair share as a mark across it. */
function shareBar({ share, fairShare, requests, state }) {
  if (state === 'listed' && requests === 0)
    return h(
      'span',
      { class: 'no-evidence' },
      h('span', { 'aria-hidden': 'true' }, '∅ '),
      'no evidence: no request went there',
    );
  const fair = fairShare === undefined ? '' : `, fair would be ${percent(fairShare)}`;
  const label = `${percent(share)}${fair}`;
  return [
    h(
      'svg',
      {
        class: 'share',
        key: 'bar',
        viewBox: '0 0 100 10',
        preserveAspectRatio: 'none',
        role: 'img',
        'aria-label': label,
      },
      h('rect', { class: 'm-all', width: 100, height: 10 }),
      h('rect', { class: 'm-part', width: (share ?? 0) * 100, height: 10 }),
      fairShare === undefined
        ? null
        : h('rect', { class: 'm-fair', x: Math.min(99, fairShare * 100), width: 1, height: 10 }),
    ),
    h('span', { class: 'dim', key: 'text' }, label),
  ];
}

function changeList(changes, nowMs) {
  return h(
    'section',
    null,
    h('h3', null, 'Changes of the lists'),
    changes.length === 0
      ? empty(
          'No list has changed since Sidelight began.',
          'DNS, EDS and file changes are drawn here with the connections that they left behind.',
        )
      : changes.slice(0, 50).map((one) => changesOf(one, nowMs)),
  );
}

function changesOf({ cluster, source, subject, stale, flips }, nowMs) {
  const fromMs = Math.min(nowMs - shownChangesMs, flips.at(-1)?.atMs ?? nowMs);
  return h(
    'article',
    { class: 'card', key: cluster },
    h('h4', null, cluster, ' ', h('small', { class: 'dim' }, `${source} ${subject}${stale ? ' (stale)' : ''}`)),
    h(
      'figure',
      { class: 'curve' },
      changeLine(flips, fromMs, nowMs),
      h(
        'figcaption',
        null,
        h('span', null, timeOfDay(fromMs)),
        h('span', null, '▲ came  ▼ left'),
        h('span', null, 'now'),
      ),
    ),
    h(
      'ol',
      { class: 'plain' },
      flips
        .toReversed()
        .slice(0, 5)
        .map((flip) => h('li', { key: flip.atMs }, flipText(flip))),
    ),
  );
}

function flipText({ atMs, added, addedCount, removed, removedCount, connectionsLeft, connectionsOpened, cleared }) {
  const names = (list, all) => `${list.join(', ')}${all > list.length ? ` and ${all - list.length} more` : ''}`;
  return [
    `${timeOfDay(atMs)} `,
    addedCount > 0 ? `▲ ${names(added, addedCount)} ` : '',
    removedCount > 0 ? `▼ ${names(removed, removedCount)} ` : '',
    h(
      'span',
      { class: 'dim', key: 'more' },
      `left ${plural(connectionsLeft, 'connection')} behind, ${count(connectionsOpened)} opened since, ${count(cleared)} of ${count(removedCount)} cleared`,
    ),
  ];
}
