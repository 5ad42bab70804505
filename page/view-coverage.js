import { count, duration, plural, timeOfDay, wholeDuration } from './format.js';
import { empty, scrollTable } from './parts.js';
import { h } from './preact.js';
import { spaced, unknownPinWords } from './words.js';

/** A reporter that said nothing for so long, though its stream is open, is worth a word, ms. */
const quietMs = 60_000;

/** What cannot be seen now, worst first, each with what to do: louder than any finding. */
function blindnesses(coverage) {
  if (coverage === undefined) return [];
  const { profiles, expected, pins, blindSources, blindSourceCount, reporters } = coverage;
  const reporting = profiles.reduce((sum, one) => sum + one.reporters, 0);
  const silent = profiles.reduce((sum, one) => sum + one.silent, 0);
  const tagOnly = profiles.find(({ profile }) => profile === 'tag')?.reporters ?? 0;
  const old = reporters.filter(
    ({ profile, configVersion, streams }) => profile !== 'tag' && streams > 0 && configVersion < 2,
  );
  const found = [];
  if (reporting === 0 && silent === 0)
    found.push([
      'No proxy reports.',
      'Nothing below is evidence of anything. Attach an Envoy: sidelight attach writes the config, sidelight doctor says what is wrong with it.',
    ]);
  else if (reporting === 0)
    found.push(['No proxy reports now.', 'What is shown is from before. Check that the proxies reach the gRPC port.']);
  if (silent > 0)
    found.push([
      `${plural(silent, 'proxy', 'proxies')} reported before and ${silent === 1 ? 'is' : 'are'} silent now.`,
      'What it still uses is not known. Was it stopped, or can it not reach Sidelight?',
    ]);
  if (expected !== undefined && expected.missing.length > 0)
    found.push([
      `${plural(expected.pods - expected.reporting, 'pod')} should report and ${expected.pods - expected.reporting === 1 ? 'does' : 'do'} not.`,
      'No traffic yet, not attached, or heard by another replica: see Coverage.',
    ]);
  if (expected?.stale === true)
    found.push(['Who should report is not known.', `${expected.subject}: ${expected.lastError ?? 'no answer yet'}`]);
  if (tagOnly > 0)
    found.push([
      `${plural(tagOnly, 'proxy', 'proxies')} of profile tag: no outcomes.`,
      'ext_proc alone cannot see failed attempts; attach the access log too (profile full).',
    ]);
  if (old.length > 0)
    found.push([
      `${plural(old.length, 'proxy', 'proxies')} with a config of version 1.`,
      'Requests that run for minutes are told of at their end only: attach the current config.',
    ]);
  if (blindSourceCount > 0)
    found.push([
      `${plural(blindSourceCount, 'cluster')} whose list cannot be gone by.`,
      blindSources
        .slice(0, 3)
        .map(
          ({ cluster, why, lastError }) =>
            `${cluster}: ${unknownPinWords[why]}${lastError === undefined ? '' : ` (${lastError})`}`,
        )
        .join('; '),
    ]);
  for (const [reason, connections] of Object.entries(pins.unknown)) {
    if (reason === 'source_stale' || reason === 'no_answer_yet' || reason === 'other_resolver') continue;
    found.push([
      `${plural(connections, 'connection')} of which nobody knows whether ${connections === 1 ? 'it is' : 'they are'} pinned.`,
      `${unknownPinWords[reason] ?? spaced(reason)}.`,
    ]);
  }
  return found;
}

/** On top of every view: who reports, what is hidden, how late and lossy we are. */
export function coverageBand({ parts }) {
  const { coverage } = parts;
  if (coverage === undefined)
    return h('section', { class: 'band', 'aria-label': 'Coverage' }, 'Waiting for Sidelight to say who reports.');
  const blind = blindnesses(coverage);
  return h(
    'section',
    { class: `band ${blind.length > 0 ? 'is-blind' : 'is-clear'}`, 'aria-label': 'Coverage' },
    blind.length === 0
      ? h('p', { class: 'clear' }, h('span', { 'aria-hidden': 'true' }, '◉ '), 'No blind spot is known.')
      : [
          h('h2', { key: 'head' }, h('span', { 'aria-hidden': 'true' }, '◌ '), 'What Sidelight cannot see now'),
          h(
            'ul',
            { key: 'list' },
            blind.map(([what, todo]) => h('li', { key: what }, h('strong', null, what), ` ${todo}`)),
          ),
        ],
    h('p', { class: 'self' }, selfText(coverage)),
  );
}

function selfText({ profiles, pins, self }) {
  const who = profiles
    .filter(({ reporters }) => reporters > 0)
    .map(({ profile, reporters }) => `${reporters} ${profile}`);
  const lost = self.losses.filter(isLoss).reduce((sum, one) => sum + one.count, 0);
  const connections = Object.values(pins.counts).reduce((sum, one) => sum + one, 0);
  return [
    who.length === 0 ? 'no reporters' : `reporting: ${who.join(', ')}`,
    `${plural(connections, 'connection')} in use`,
    `event loop ${duration(self.eventLoopLagMs)} late`,
    self.tag === undefined
      ? ''
      : `99 % of tags within ${self.tag.p99BelowMs === undefined ? 'more than 1 s' : duration(self.tag.p99BelowMs)}`,
    lost === 0 ? 'nothing lost here' : `${count(lost)} lost or refused here: see Coverage`,
  ]
    .filter(Boolean)
    .join(' · ');
}

/** Spans that sampling did not want are no loss; nor are entries that joined, if in an unusual way. */
function isLoss({ metric, of }) {
  if (metric === 'sidelight.self.spans.dropped') return of !== 'unsampled';
  return metric !== 'sidelight.self.join.events' && metric !== 'sidelight.self.exchanges.incomplete';
}

/** The proxies and sources one by one, and every count of what went wrong inside Sidelight. */
export function coverageView({ parts, nowMs }) {
  const { coverage } = parts;
  if (coverage === undefined) return empty('Waiting for Sidelight to say who reports.');
  return [
    h(
      'div',
      { class: 'tools' },
      h('h2', null, 'Coverage and health'),
      h(
        'p',
        { class: 'dim' },
        `Sidelight ${coverage.version}, running for ${wholeDuration(nowMs - coverage.startedMs)}.`,
      ),
    ),
    section(
      'Reporters',
      ['Workload', 'Pod / node id', 'Kind', 'Profile', 'Config', 'Envoy', 'Log streams', 'Last entry'],
      coverage.reporters,
      (one) => reporterRow(one, nowMs),
      'No proxy has reported yet.',
    ),
    coverage.reporterCount > coverage.reporters.length
      ? h(
          'p',
          { class: 'note' },
          `The first ${coverage.reporters.length} of ${count(coverage.reporterCount)}, the silent ones first; all are in /api/v1/reporters.`,
        )
      : null,
    coverage.expected === undefined
      ? null
      : section(
          'Should report and do not',
          ['Namespace', 'Pod'],
          coverage.expected.missing,
          ({ namespace, pod }) => row(`${namespace}/${pod}`, [namespace, pod]),
          'All that should report do.',
        ),
    section(
      'Lists that cannot be gone by',
      ['Cluster', 'Source', 'Why', 'Last good answer', 'Last error'],
      coverage.blindSources,
      (one) =>
        row(one.cluster, [
          one.cluster,
          `${one.source} ${one.subject}`,
          unknownPinWords[one.why],
          one.lastAnswerMs === undefined ? 'never' : timeOfDay(one.lastAnswerMs),
          one.lastError ?? '',
        ]),
      'Every source answers.',
    ),
    section(
      'Lost, refused or odd inside Sidelight',
      ['Metric', 'Of', 'Count', 'Means'],
      coverage.self.losses,
      (one) => row(`${one.metric} ${one.of}`, [h('code', null, one.metric), one.of, count(one.count), one.means]),
      'Nothing.',
    ),
  ];
}

function reporterRow(one, nowMs) {
  const isOut = one.streams === 0 && one.profile !== 'tag';
  const last = `${wholeDuration(nowMs - one.lastEntryMs)} ago`;
  return row(`${one.profile} ${one.nodeId} ${one.pod} ${one.workload}`, [
    one.workload || '–',
    one.pod || one.nodeId || '–',
    spaced(one.kind),
    one.profile,
    `version ${one.configVersion}`,
    one.envoyVersion || '–',
    isOut ? h('strong', null, '◌ none') : count(one.streams),
    nowMs - one.lastEntryMs > quietMs ? h('strong', null, last) : last,
  ]);
}

function row(key, cells) {
  return h(
    'tr',
    { key },
    cells.map((cell, index) => h('td', { key: index }, cell)),
  );
}

function section(title, columns, rows, rowOf, none) {
  return h(
    'section',
    null,
    h('h3', null, title),
    rows.length === 0 ? h('p', { class: 'dim' }, none) : scrollTable(title, columns, rows.map(rowOf)),
  );
}
