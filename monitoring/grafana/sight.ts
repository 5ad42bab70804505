import { attribute as a, type MetricAttribute } from '../../src/emit/attributes.ts';
import type { metrics } from '../../src/emit/names.ts';
import { legendOf, type Panel, type Row, type Target } from './panel.ts';
import { by, type Matchers, quantile, rate, series } from './promql.ts';

const discovery: Panel = {
  title: 'Age of what is known of endpoints',
  says: 'Since the last good answer of each source. Nothing is judged by an old one: pins are `unknown` then.',
  unit: 's',
  targets: [{ expr: by('max', [a.cluster, a.source], series('discoveryAge')), legend: legendOf(a.cluster, a.source) }],
};

const coverage: Panel = {
  title: 'Proxies that report',
  says: 'A zero elsewhere is a fact only with these. Silent: reported before, and does not now. Expected: as Kubernetes lists them, where the config says so.',
  unit: 'short',
  targets: [
    { expr: by('sum', [a.profile], series('coverageReporters')), legend: `${legendOf(a.profile)} reporting` },
    { expr: by('sum', [a.profile], series('coverageSilent')), legend: `${legendOf(a.profile)} silent` },
    { expr: by('max', [], series('coverageExpected')), legend: 'expected' },
  ],
};

const lastEntry: Panel = {
  title: 'Since the last entry',
  says: 'Of any proxy of that profile, at the replica that heard it last. It grows where there is no traffic, and where Sidelight is blind.',
  unit: 's',
  targets: [{ expr: by('min', [a.profile], series('coverageLastEntryAge')), legend: legendOf(a.profile) }],
};

function lost(
  what: string,
  key: keyof typeof metrics,
  names: readonly MetricAttribute[],
  matchers: Matchers = {},
): Target {
  return { expr: rate(names, key, matchers), legend: [what, ...names.map((name) => legendOf(name))].join(' ') };
}

const losses: Panel = {
  title: 'What Sidelight lost or could not use',
  says: 'Per second. All of it should be 0: else rates and traces are not whole, and the label says which part.',
  unit: 'short',
  targets: [
    lost('refused', 'selfRefused', [a.limit]),
    lost('not decoded', 'selfDecodeErrors', [a.stream]),
    lost('fail open', 'selfFailOpen', [a.reason]),
    lost('incomplete', 'selfIncomplete', [a.reason]),
    lost('spans', 'selfSpansDropped', [a.reason], { [a.reason]: '!="unsampled"' }),
    lost('exports', 'selfExports', [a.signal], { [a.result]: '="failed"' }),
    lost('label overflow', 'selfLabelOverflow', [a.label]),
  ],
};

const speed: Panel = {
  title: 'How fast it answers',
  says: 'From an ext_proc message to its answer, and how late the event loop is. Envoy waits for the first (message_timeout).',
  unit: 's',
  targets: [
    { expr: quantile(0.99, [], 'selfTagDuration'), legend: 'tag p99' },
    { expr: by('max', [], series('selfEventLoopLag')), legend: 'event loop p99' },
  ],
};

export const sightRow: Row = {
  title: 'What does Sidelight see?',
  panels: [discovery, coverage, lastEntry, losses, speed],
};
