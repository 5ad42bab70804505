import { waterfall } from './draw.js';
import { duration, timeOfDay, wholeDuration } from './format.js';
import { empty, fits, pageOf, pager } from './parts.js';
import { h } from './preact.js';
import { causeWords, flagWords, outcomeSigns, outcomeWords, pinWords, spaced, unknownPinWords } from './words.js';

/** The latest exchanges that are worth a look; each opens to its attempts. */
export function exchangesView(state) {
  const { parts, address, go, newer, showNewer } = state;
  if (parts.exchanges === undefined) return empty('Waiting for the first exchanges.');
  const all = parts.exchanges.exchanges;
  const rows = all.filter(
    (one) => (address.outcome === '' || one.outcome === address.outcome) && fits(address.q, textsOf(one)),
  );
  const page = pageOf(rows, address.page);
  return [
    h(
      'div',
      { class: 'tools' },
      h('h2', null, 'Exchanges'),
      h(
        'label',
        null,
        'Outcome ',
        h(
          'select',
          { value: address.outcome, onChange: (event) => go({ outcome: event.currentTarget.value, page: 0 }) },
          h('option', { value: '' }, 'any'),
          Object.keys(outcomeWords).map((name) => h('option', { value: name, key: name }, name)),
        ),
      ),
      newer === undefined
        ? null
        : h(
            'p',
            { class: 'note' },
            'Held while an exchange is open. ',
            h('button', { type: 'button', onClick: showNewer }, 'Close it and show the newest'),
          ),
    ),
    page.total === 0
      ? nothing(all.length, address)
      : h(
          'div',
          { class: 'exchanges' },
          page.rows.map((one) => exchangeRow(one, state)),
        ),
    pager(page, state),
  ];
}

function nothing(all, { q, outcome }) {
  if (all > 0) return empty(`No exchange fits ${[q && `“${q}”`, outcome].filter(Boolean).join(' and ')}.`);
  return empty(
    'Nothing worth a look yet.',
    'Here come exchanges that failed, that a retry rescued, or that went over a pinned connection. Plain successes are counted under Clusters.',
  );
}

function textsOf(one) {
  return [
    one.cluster,
    one.endpoint,
    one.workload,
    one.pod,
    one.method,
    one.path,
    String(one.code ?? ''),
    one.outcome,
    one.cause,
    one.pin,
    one.traceId,
    ...one.flags,
    ...one.attempts.map(({ endpoint }) => endpoint),
  ];
}

function keyOf(one) {
  return [one.startMs, one.pod, one.path, one.traceId, one.attempts[0]?.connectionId].join('|');
}

function exchangeRow(one, state) {
  const { opened, toggle } = state;
  const key = keyOf(one);
  const isOpen = opened.has(key);
  return h(
    'details',
    {
      key,
      class: `exchange o-${one.outcome}`,
      open: isOpen,
      onToggle: (event) => toggle(key, event.currentTarget.hasAttribute('open')),
    },
    h(
      'summary',
      null,
      h('time', null, timeOfDay(one.startMs)),
      h(
        'span',
        { class: 'outcome' },
        h('span', { 'aria-hidden': 'true' }, `${outcomeSigns[one.outcome]} `),
        one.outcome,
      ),
      h('span', { class: 'what' }, `${one.method ?? ''} ${one.path ?? ''}`),
      h('span', { class: 'dim' }, one.cluster ?? '(no cluster)'),
      h('span', { class: 'number' }, one.code ?? 'no code'),
      h('span', { class: 'number' }, duration(one.durationMs)),
      h('span', { class: 'dim' }, attemptsText(one)),
    ),
    isOpen ? detail(one, state) : null,
  );
}

function attemptsText({ attempts, pin }) {
  const tries = attempts.length === 1 ? '1 attempt' : `${attempts.length} attempts`;
  return pin === undefined || pin === 'current' || pin === 'unknown' ? tries : `${tries}, pin ${spaced(pin)}`;
}

function detail(one, { parts, nowMs }) {
  const url = parts.coverage?.traceUrl;
  return h(
    'div',
    { class: 'detail' },
    h(
      'p',
      null,
      outcomeWords[one.outcome],
      one.cause === undefined ? '' : ` First cause: ${causeWords[one.cause] ?? spaced(one.cause)}.`,
      one.unknownReason === undefined ? '' : ` ${spaced(one.unknownReason)}.`,
    ),
    one.maskedLatencyMs === undefined
      ? null
      : h('p', null, `What the hidden attempts cost: ${duration(one.maskedLatencyMs)}.`),
    waterfall(one),
    one.flags.length === 0
      ? null
      : h(
          'ul',
          { class: 'flags' },
          one.flags.map((flag) =>
            h(
              'li',
              { key: flag },
              h('code', null, flag),
              ` ${flagWords[flag] ?? 'a flag that this page does not know'}`,
            ),
          ),
        ),
    pinText(one, nowMs),
    h(
      'p',
      { class: 'dim' },
      `Seen by ${[one.workload, one.pod, one.namespace].filter(Boolean).join(' / ') || 'an unnamed proxy'} (${spaced(one.reporterKind)}), at ${new Date(one.startMs).toISOString()} by its clock.`,
    ),
    traceOf(one, url),
  );
}

function pinText({ pin, pinReason, leftAtMs }, nowMs) {
  if (pin === undefined) return null;
  const why = pinReason === undefined ? '' : ` (${unknownPinWords[pinReason] ?? spaced(pinReason)})`;
  const left = leftAtMs === undefined ? '' : `; it left ${wholeDuration(nowMs - leftAtMs)} ago`;
  return h('p', null, h('strong', null, `Pin ${spaced(pin)}: `), `${pinWords[pin]}${why}${left}.`);
}

function traceOf({ traceId }, url) {
  if (traceId === undefined) return h('p', { class: 'dim' }, 'No trace was made of it.');
  const id = h('code', null, traceId);
  if (url === undefined)
    return h(
      'p',
      null,
      'Trace ',
      id,
      h('span', { class: 'dim' }, ' (traces.jaegerUrl in the config makes this a link)'),
    );
  return h(
    'p',
    null,
    h(
      'a',
      { href: url.replaceAll('{traceId}', encodeURIComponent(traceId)), rel: 'noreferrer noopener', target: '_blank' },
      'Open the trace ',
      id,
    ),
  );
}
