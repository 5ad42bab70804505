import { duration, plural, timeOfDay } from './format.js';
import { h } from './preact.js';

/*
 * Pictures, as SVG that stretches. Each has a sentence that says the same to who cannot see it, and shape or place says
 * what colour says.
 */

function picture(className, [width, height], label, shapes) {
  const box = { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label };
  return h('svg', { class: className, ...box }, h('title', null, label), shapes);
}

const sparkHeight = 24;

/** One column per step of history: at the bottom what succeeded at once, above it what was masked, on top what failed. */
export function spark(history) {
  const points = history?.points ?? [];
  const busy = points.filter(({ counted }) => counted > 0);
  if (busy.length === 0) return h('span', { class: 'dim' }, history === undefined ? '…' : 'no traffic');
  const columns = points.flatMap(({ counted, effective, firstTry }, index) => {
    if (counted === 0) return [];
    const good = (firstTry / counted) * sparkHeight;
    const seen = (effective / counted) * sparkHeight;
    return [
      column('good', index, sparkHeight - good, good),
      column('masked', index, sparkHeight - seen, seen - good),
      column('failed', index, 0, sparkHeight - seen),
    ];
  });
  const worst = Math.min(...busy.map(({ counted, firstTry }) => firstTry / counted));
  const minutes = Math.round((points.length * history.bucketMs) / 60_000);
  const label = `Last ${minutes} min: first-try success fell to ${Math.round(worst * 100)} % at worst`;
  return picture('spark', [points.length, sparkHeight], label, columns);
}

function column(name, x, y, height) {
  return height > 0.01 ? h('rect', { class: `s-${name}`, x: x + 0.05, y, width: 0.9, height }) : null;
}

/** @type {[number, number]} */
const curveSize = [600, 90];

/** What still went to an endpoint from the moment it left until now: requests, or bytes where there are no requests. */
export function drainCurve({ leftAtMs, graceMs, curve }, nowMs) {
  const points = curve?.points ?? [];
  const [width, height] = curveSize;
  const bucketMs = curve?.bucketMs ?? 1000;
  const endMs = endOf(points.at(-1)?.[0], { leftAtMs, graceMs, bucketMs, nowMs });
  const x = (ms) => Math.max(0, Math.min(width, ((ms - leftAtMs) / (endMs - leftAtMs)) * width));
  const byRequests = points.some(([, requests]) => requests > 0);
  const amount = (point) => (byRequests ? point[1] : point[2]);
  const peak = Math.max(1, ...points.map(amount));
  const steps = points.map((point) => {
    const tall = (amount(point) / peak) * (height - 6);
    const from = x(point[0]);
    const wide = Math.max(1, x(point[0] + bucketMs) - from);
    return h('rect', { class: 'c-flow', x: from, y: height - tall, width: wide, height: tall });
  });
  const shapes = [
    h('rect', { class: 'c-grace', x: 0, y: 0, width: x(leftAtMs + (graceMs ?? 0)), height }),
    ...steps,
    h('line', { class: 'c-base', x1: 0, x2: width, y1: height, y2: height }),
  ];
  const what = byRequests ? 'requests' : 'bytes';
  const last = points.at(-1);
  const label =
    last === undefined
      ? 'Nothing went there after it left'
      : `${what} since it left, at most ${peak} in ${duration(bucketMs)}; the last at ${timeOfDay(last[0])}`;
  return h(
    'figure',
    { class: 'curve' },
    picture('curve-picture', curveSize, label, shapes),
    h(
      'figcaption',
      null,
      h('span', null, `left ${timeOfDay(leftAtMs)}`),
      h('span', null, points.length === 0 ? label : `${what} per ${duration(bucketMs)}, at most ${peak}`),
      h('span', null, endMs < nowMs ? 'nothing since then' : 'now'),
    ),
  );
}

/** What fell to nothing hours ago is drawn to a little after that, not as one column beside hours of nothing. */
function endOf(lastMs, { leftAtMs, graceMs = 0, bucketMs, nowMs }) {
  const flowedMs = Math.max(lastMs === undefined ? 0 : lastMs + bucketMs - leftAtMs, graceMs);
  return Math.max(leftAtMs + bucketMs * 10, Math.min(nowMs, leftAtMs + flowedMs * 1.5 + 10_000));
}

/** The attempts of an exchange on its time axis; one that failed is hatched and says why. */
export function waterfall(exchange) {
  const rows = [
    { label: 'to the client', fromMs: 0, toMs: exchange.durationMs ?? 0, kind: 'whole', note: '' },
    ...exchange.attempts.map((attempt) => ({
      label: `${attempt.number}  ${attempt.endpoint}`,
      fromMs: attempt.offsetMs,
      toMs: attempt.offsetMs + (attempt.durationMs ?? 0),
      kind: attempt.result === 'ok' ? 'good' : 'bad',
      note: attemptNote(attempt),
    })),
  ];
  const endMs = Math.max(1, ...rows.map(({ toMs }) => toMs));
  return h(
    'div',
    { class: 'waterfall' },
    rows.map((row) => waterfallRow(row, endMs)),
    h(
      'div',
      { class: 'axis' },
      h('span', null, '0'),
      h('span', null, duration(endMs / 2)),
      h('span', null, duration(endMs)),
    ),
  );
}

function waterfallRow({ label, fromMs, toMs, kind, note }, endMs) {
  const from = (fromMs / endMs) * 1000;
  const wide = Math.max(4, ((toMs - fromMs) / endMs) * 1000);
  const sentence = `${label}: from ${duration(fromMs)}, for ${duration(toMs - fromMs)}`;
  const bars = [h('rect', { class: `w-${kind}`, x: Math.min(from, 996), y: 2, width: wide, height: 12 })];
  // Hatched: stripes of the background over the bar.
  if (kind === 'bad')
    for (let stripe = from + 6; stripe < from + wide; stripe += 12)
      bars.push(h('rect', { class: 'w-stripe', x: stripe, y: 2, width: 5, height: 12 }));
  return h(
    'div',
    { class: 'waterfall-row' },
    h('code', null, label),
    picture('bar', [1000, 16], sentence, bars),
    h('span', { class: 'number' }, duration(toMs - fromMs)),
    h('span', { class: 'note' }, note),
  );
}

function attemptNote({ result, cause, code, connectionId, connectionAgeMs }) {
  const what = result === 'ok' ? `${code ?? 'ok'}` : [cause ?? result ?? 'not judged', code].filter(Boolean).join(' ');
  const over = connectionId === undefined ? '' : ` over connection ${connectionId}`;
  const age = connectionAgeMs === undefined ? '' : `, ${duration(connectionAgeMs)} old`;
  return `${what.replaceAll('_', ' ')}${over}${age}`;
}

/** When a cluster's list changed: an upward mark where endpoints came, a downward one where they left. */
export function changeLine(flips, fromMs, nowMs) {
  const x = (ms) => ((ms - fromMs) / Math.max(1, nowMs - fromMs)) * 600;
  const shown = flips.filter(({ atMs }) => atMs >= fromMs);
  const marks = shown.flatMap(({ atMs, addedCount, removedCount }) => [
    addedCount > 0 ? h('path', { class: 'f-added', d: `M${x(atMs) - 5} 14 L${x(atMs)} 3 L${x(atMs) + 5} 14Z` }) : null,
    removedCount > 0
      ? h('path', { class: 'f-removed', d: `M${x(atMs) - 5} 18 L${x(atMs)} 29 L${x(atMs) + 5} 18Z` })
      : null,
  ]);
  const base = h('line', { class: 'c-base', x1: 0, x2: 600, y1: 16, y2: 16 });
  const label = `${plural(shown.length, 'change')} since ${timeOfDay(fromMs)}`;
  return picture('changes', [600, 32], label, [base, ...marks]);
}
