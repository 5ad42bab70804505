import { drainCurve } from './draw.js';
import { bytes, count, plural, timeOfDay, wholeDuration } from './format.js';
import { empty, fits, scrollTable } from './parts.js';
import { h } from './preact.js';
import { clearedWords, drainWords, pinReasonWords, pinWords, spaced } from './words.js';

/** Bytes per second are taken over so long, ms. */
const rateMs = 10_000;

/** Who is still on an endpoint that left, and whether it is drained. */
export function pinsView({ parts, address, nowMs }) {
  const { pins } = parts;
  if (pins === undefined) return empty('Waiting for the first look at the pins.');
  const rows = pins.rows.filter((row) => fits(address.q, [row.cluster, row.endpoint, row.subject, ...row.reporters]));
  return [
    h(
      'div',
      { class: 'tools' },
      h('h2', null, 'Pins board'),
      h('p', { class: 'dim' }, 'Endpoints that left, and who is still on them.'),
    ),
    rows.length === 0
      ? nothing(pins.rows.length, address.q)
      : h(
          'div',
          { class: 'board' },
          rows.map((row) => card(row, pins.quietForMs, nowMs)),
        ),
    pins.truncated
      ? h('p', { class: 'note' }, 'More endpoints left than are shown: those with connections are here.')
      : null,
    clearedTable(
      pins.cleared.filter((pin) => fits(address.q, [pin.cluster, pin.endpoint, pin.reporter])),
      nowMs,
    ),
  ];
}

function nothing(all, q) {
  if (all > 0) return empty(`No endpoint that left fits “${q}”.`);
  return empty(
    'No endpoint has left since Sidelight began to watch.',
    'When a DNS answer, an EndpointSlice or a file drops an address, it appears here within a second or two of Sidelight’s next look. Clusters without a source never appear: see Coverage.',
  );
}

function card(row, quietForMs, nowMs) {
  const { state } = row.verdict;
  const [word, sign, sentence] = drainWords[state];
  return h(
    'article',
    {
      class: `card d-${state}`,
      key: `${row.cluster}\n${row.endpoint}`,
      'data-endpoint': row.endpoint,
      'data-state': state,
    },
    h(
      'header',
      null,
      h(
        'div',
        null,
        h('h3', null, h('code', null, row.endpoint)),
        h('div', { class: 'dim' }, `${row.cluster} · ${row.source ?? 'no source'} ${row.subject ?? ''}`),
      ),
      h('p', { class: 'verdict' }, h('span', { 'aria-hidden': 'true' }, `${sign} `), word),
    ),
    h('p', { class: 'why' }, sentence, ' ', whyText(row.verdict, quietForMs, nowMs)),
    unknowns(row.verdict),
    facts(row, nowMs),
    drainCurve(row, nowMs),
    adviceOf(row),
    holdersOf(row, nowMs),
  );
}

function whyText({ state, quietMs, mayBeOpen, openUntilMs }, quietForMs, nowMs) {
  const quiet = `Quiet for ${wholeDuration(Math.min(quietMs, quietForMs))} of ${wholeDuration(quietForMs)}.`;
  switch (state) {
    case 'may_be_open': {
      const until = openUntilMs === undefined ? 'without limit' : `for ${wholeDuration(openUntilMs - nowMs)} at most`;
      return `${mayBeOpen === 0 ? 'Forgotten connections' : plural(mayBeOpen, 'connection')} may be open ${until}.`;
    }
    case 'drained':
      return 'As far as this replica knows: with others, ask sidelight drained --from each of them.';
    case 'in_use':
    case 'blind':
      return quiet;
    default:
      return '';
  }
}

/** What hides the truth is said whatever the verdict. */
function unknowns({ blind, moreBlind }) {
  if (blind.length === 0) return null;
  return h(
    'ul',
    { class: 'blind' },
    blind.map(({ reason, text }) => h('li', { key: `${reason} ${text}` }, h('strong', null, 'Not known: '), text)),
    moreBlind > 0 ? h('li', null, `and ${moreBlind} more`) : null,
  );
}

function facts(row, nowMs) {
  const { open, idle, unseen } = row.connections;
  const fact = (name, value, more) =>
    h('div', null, h('dt', null, name), h('dd', null, value, more ? h('small', null, ` ${more}`) : null));
  return h(
    'dl',
    { class: 'facts' },
    fact(
      'Left',
      row.leftAtMs === undefined ? '–' : `${wholeDuration(nowMs - row.leftAtMs)} ago`,
      row.graceMs === undefined ? '' : `grace ${wholeDuration(row.graceMs)}`,
    ),
    fact('Connections', count(open + idle + unseen), `${open} open, ${idle} idle, ${unseen} unseen`),
    fact('Oldest', row.oldestOpenedMs === undefined ? '–' : wholeDuration(nowMs - row.oldestOpenedMs)),
    fact('Bytes/s', bytes(recentRate(row.curve, nowMs)), 'last 10 s'),
    fact('Since it left', plural(row.requests, 'request'), bytes(row.bytes)),
    fact('Last used', row.lastUsedMs === undefined ? 'never' : `${wholeDuration(nowMs - row.lastUsedMs)} ago`),
    fact(
      'Reporters',
      row.reporters.length === 0 ? 'none' : row.reporters.slice(0, 3).join(', '),
      row.reporters.length > 3 ? `and ${row.reporters.length - 3} more` : '',
    ),
  );
}

function recentRate(curve, nowMs) {
  if (curve === undefined) return undefined;
  const span = Math.max(rateMs, curve.bucketMs);
  const recent = curve.points.filter(([atMs]) => atMs + curve.bucketMs > nowMs - span);
  return recent.reduce((sum, [, , amount]) => sum + amount, 0) / (span / 1000);
}

function adviceOf({ advice, listedBy }) {
  const listing =
    listedBy.length === 0
      ? null
      : h(
          'li',
          null,
          `Still in the own list of ${listedBy.slice(0, 3).join(', ')}${listedBy.length > 3 ? ` and ${listedBy.length - 3} more` : ''}.`,
        );
  if (advice === undefined && listing === null) return null;
  return h(
    'div',
    { class: 'advice' },
    advice === undefined
      ? null
      : h('p', null, h('strong', null, 'Why: '), pinReasonWords[advice.reason] ?? spaced(advice.reason), '.'),
    h(
      'ul',
      null,
      listing,
      (advice?.changes ?? []).map((change) => h('li', { key: change }, h('strong', null, 'What ends it: '), change)),
    ),
  );
}

function holdersOf({ holders, connections }, nowMs) {
  if (holders.length === 0) return null;
  const all = connections.open + connections.idle + connections.unseen;
  return h(
    'details',
    null,
    h(
      'summary',
      null,
      all > holders.length ? `The first ${holders.length} of ${plural(all, 'connection')}` : plural(all, 'connection'),
    ),
    scrollTable(
      'Connections',
      ['Reporter', 'Connection', 'State', 'Pin', 'Age', 'Last used', 'Requests', 'Bytes'],
      holders.map((one) => holderRow(one, nowMs)),
    ),
  );
}

function holderRow(one, nowMs) {
  return h(
    'tr',
    { key: `${one.reporter} ${one.connectionId}` },
    h('td', null, one.reporter),
    h('td', null, `${one.layer} ${one.connectionId}`),
    h('td', null, one.state),
    h('td', { title: pinWords[one.pin] }, spaced(one.pin)),
    h('td', { class: 'number' }, wholeDuration(nowMs - one.openedMs)),
    h('td', { class: 'number' }, `${wholeDuration(nowMs - one.lastUsedMs)} ago`),
    h('td', { class: 'number' }, count(one.requests)),
    h('td', { class: 'number' }, bytes(one.bytes)),
  );
}

function clearedTable(cleared, nowMs) {
  if (cleared.length === 0) return null;
  return h(
    'section',
    { class: 'cleared' },
    h('h3', null, 'Cleared lately'),
    scrollTable(
      'Cleared lately',
      ['Cleared', 'Endpoint', 'Cluster', 'Connection', 'Reporter', 'Was', 'How'],
      cleared.slice(0, 20).map((pin) => clearedRow(pin, nowMs)),
    ),
  );
}

function clearedRow(pin, nowMs) {
  return h(
    'tr',
    { key: `${pin.reporter} ${pin.layer} ${pin.connectionId} ${pin.clearedMs}` },
    h('td', { title: timeOfDay(pin.clearedMs) }, `${wholeDuration(nowMs - pin.clearedMs)} ago`),
    h('td', null, h('code', null, pin.endpoint)),
    h('td', null, pin.cluster),
    h('td', null, `${pin.layer} ${pin.connectionId}`),
    h('td', null, pin.reporter),
    h('td', null, spaced(pin.pin)),
    h('td', null, `${clearedWords[pin.how] ?? pin.how}${pin.by === undefined ? '' : ` (${spaced(pin.by)})`}`),
  );
}
