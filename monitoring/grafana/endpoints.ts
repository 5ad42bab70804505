import { attribute as a } from '../../src/emit/attributes.ts';
import { legendOf, type Panel, type Row } from './panel.ts';
import { by, rate, series } from './promql.ts';

const where = [a.cluster, a.endpoint, a.reporterWorkload] as const;
/** Those that nobody expects. */
const stale = { [a.pin]: '=~"stale|stale_view"', [a.expected]: '=""' };

const pins: Panel = {
  title: 'Stale pins',
  says: 'Connections in use to an endpoint that left longer ago than the grace. A point leads to the traces of its pins.',
  unit: 'short',
  targets: [{ expr: by('sum', [...where, a.layer], series('pins', stale)), legend: legendOf(...where, a.layer) }],
  traces: { 'sidelight.pin': 'stale' },
};

const oldest: Panel = {
  title: 'The oldest stale pin',
  says: 'The age of its connection.',
  unit: 's',
  targets: [{ expr: by('max', where, series('pinOldest', stale)), legend: legendOf(...where) }],
};

const bytes: Panel = {
  title: 'Bytes to endpoints that left',
  says: 'Both ways, while they drain and when they are stale: the drain curve. It has ended where it is 0 or gone.',
  unit: 'Bps',
  targets: [{ expr: rate(where, 'pinBytes'), legend: legendOf(...where) }],
};

const requests: Panel = {
  title: 'Requests, by pin',
  says: 'Whether their endpoint was still listed. `unknown`: there is no source that could say.',
  unit: 'reqps',
  targets: [{ expr: rate([a.cluster, a.pin], 'pinnedRequests'), legend: legendOf(a.cluster, a.pin) }],
};

const attempts = (...names: (typeof a.cluster | typeof a.endpoint)[]) => rate(names, 'attempts');
const onCluster = 'on (sidelight_cluster) group_left';

const share: Panel = {
  title: 'Share of each endpoint, over its fair share',
  says: '1: fair. 0.5: half of it. An endpoint without any attempt is not here, but under “no evidence”.',
  unit: 'short',
  targets: [
    {
      expr: `${attempts(a.cluster, a.endpoint)} / ${onCluster} ${attempts(a.cluster)} * ${onCluster} ${by('max', [a.cluster], series('endpointListed'))}`,
      legend: legendOf(a.cluster, a.endpoint),
    },
  ],
};

const unused: Panel = {
  title: 'Listed endpoints with no evidence',
  says: 'They got no request in 5 minutes although their cluster had some. “No errors” says nothing of them.',
  unit: 'short',
  targets: [{ expr: by('min', [a.cluster], series('endpointUnused')), legend: legendOf(a.cluster) }],
};

export const endpointsRow: Row = {
  title: 'Who is still on the old endpoint?',
  panels: [pins, oldest, bytes, requests, share, unused],
};
