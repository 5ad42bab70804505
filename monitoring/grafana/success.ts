import { attribute as a } from '../../src/emit/attributes.ts';
import { legendOf, type Panel, type Row, type Target } from './panel.ts';
import { type Matchers, quantile, rate } from './promql.ts';

/* The rates of docs/reference/metrics.md, by cluster. */
const byCluster = [a.cluster] as const;
const cluster = legendOf(a.cluster);

const countedMatchers: Matchers = {
  [a.outcome]: '!~"aborted|unknown"',
  [a.localResult]: '!="client_error"',
  [a.hedged]: '=""',
};
const counted = rate(byCluster, 'requests', countedMatchers);

function ofOutcomes(outcomes: string): string {
  return rate(byCluster, 'requests', {
    [a.outcome]: `=~"${outcomes}"`,
    [a.localResult]: '=~"|success"',
    [a.hedged]: '=""',
  });
}

const ofAttempts = (results: string) =>
  rate(byCluster, 'attempts', { [a.result]: `=~"${results}"`, [a.hedged]: '=""' });

const share = (part: string, whole: string) => `${part} / ${whole}`;

const success: Panel = {
  title: 'Success: what clients see, and what they would see',
  says: 'Effective: what the client saw. First-try: what it would have seen without retries. Actual: per attempt. The gap between the first two is masked.',
  unit: 'percentunit',
  targets: [
    { expr: share(ofOutcomes('ok|masked|local'), counted), legend: `${cluster} effective` },
    { expr: share(ofOutcomes('ok|local'), counted), legend: `${cluster} first-try` },
    { expr: share(ofAttempts('ok'), ofAttempts('ok|failed')), legend: `${cluster} actual` },
  ],
};

const masked: Panel = {
  title: 'Masked',
  says: 'The share of requests whose failed attempt a retry hid: effective less first-try. Hedged ones are left out.',
  unit: 'percentunit',
  targets: [
    {
      expr: share(rate(byCluster, 'requests', { [a.outcome]: '="masked"', [a.hedged]: '=""' }), counted),
      legend: cluster,
    },
  ],
};

const maskedBy = [a.cluster, a.reporterWorkload, a.cause] as const;
const causes: Panel = {
  title: 'Masked, by cause',
  says: 'Why the first failed attempt of each masked request failed, per second. A point leads to its traces.',
  unit: 'reqps',
  targets: [{ expr: rate(maskedBy, 'maskedLatency', {}, '_count'), legend: legendOf(...maskedBy) }],
  traces: { 'sidelight.outcome': 'masked' },
};

const latency: Panel = {
  title: 'What masking costs',
  says: 'From the start of the first attempt to that of the one that succeeded.',
  unit: 's',
  targets: [0.5, 0.99].map(
    (at): Target => ({ expr: quantile(at, byCluster, 'maskedLatency'), legend: `${cluster} p${at * 100}` }),
  ),
};

const amplification: Panel = {
  title: 'Amplification',
  says: 'Attempts per request that had one. Layers multiply: three that each do 1.5 send 3.4 for one.',
  unit: 'short',
  targets: [{ expr: share(rate(byCluster, 'attempts'), rate(byCluster, 'attemptedRequests')), legend: cluster }],
};

const aborted: Panel = {
  title: 'Callers who left first',
  says: 'The share of requests that the caller gave up. They count as no failure: a brown-out shows here first.',
  unit: 'percentunit',
  targets: [
    {
      expr: share(rate(byCluster, 'requests', { [a.outcome]: '="aborted"' }), rate(byCluster, 'requests')),
      legend: cluster,
    },
  ],
};

const outcomes: Panel = {
  title: 'Requests, by outcome',
  says: 'What became of each request. `unknown` is never counted as a success or a failure.',
  unit: 'reqps',
  targets: [{ expr: rate([a.cluster, a.outcome], 'requests'), legend: legendOf(a.cluster, a.outcome) }],
};

export const successRow: Row = {
  title: 'Is the success rate real?',
  panels: [success, masked, causes, latency, amplification, aborted, outcomes],
};
