import { checkAuthority } from '../checks/authority.ts';
import { checkOurClusters } from '../checks/cluster.ts';
import { checkExtProcs } from '../checks/ext-proc.ts';
import { checkKey } from '../checks/key.ts';
import { checkLogs } from '../checks/logs.ts';
import { checkOrder } from '../checks/order.ts';
import { checkProfiles } from '../checks/profile.ts';
import type { ProxyFinding } from '../finding.ts';
import { textAt } from '../json.ts';
import { proxyOf } from '../proxy.ts';
import type { Manifest } from '../read/yaml.ts';
import { type EnvoyFilter, envoyFiltersOf, type Mesh, type Patch } from './envoy-filter.ts';
import { checkEverywhere } from './mesh.ts';
import { patchedChains } from './patched-chain.ts';
import { clusterNamesIn } from './values.ts';
import { checkVisibility } from './visibility.ts';
import { checkWaypoint } from './waypoint.ts';

/** What is said of Sidelight's own parts, wherever they are written. */
const partChecks = [checkExtProcs, checkOrder, checkLogs, checkKey, checkProfiles, checkOurClusters, checkAuthority];

/** Looks at the EnvoyFilters of all files together: the parts of one attachment may be spread over several. */
export function examineManifests(manifests: readonly Manifest[], rootNamespace: string): ProxyFinding[] {
  const filters = envoyFiltersOf(manifests);
  const mesh: Mesh = { manifests, filters, rootNamespace };
  const parts = patchedChains(filters).flatMap(({ config, placeOf }) => {
    const proxy = proxyOf({ name: '' }, config);
    const found = partChecks.flatMap((check) => check(proxy));
    return found.map((one) => ({ ...one, where: placeOf(one.where) }));
  });
  return [
    ...ours(filters).flatMap((filter) => [
      ...checkWaypoint(filter, mesh),
      ...checkEverywhere(filter, mesh),
      ...checkVisibility(filter, mesh),
    ]),
    // A name that is wrong in a patch was told with its patch.
    ...parts.filter(({ id }) => id !== 'default-filter-name'),
  ];
}

/**
 * Those that speak of Sidelight, or make the cluster that such a one calls: what others do is not for this to judge. All,
 * where none does: then whoever asks means them.
 */
function ours(filters: readonly EnvoyFilter[]): readonly EnvoyFilter[] {
  const speaking = filters.filter(({ patches }) => /sidelight/i.test(JSON.stringify(patches)));
  if (speaking.length === 0) return filters;
  const called = new Set(speaking.flatMap(({ patches }) => clusterNamesIn(patches)));
  const makes = ({ value, match }: Patch) =>
    called.has(textAt(value, 'name')) || called.has(textAt(match, 'cluster', 'name'));
  return filters.filter((filter) => speaking.includes(filter) || filter.patches.some(makes));
}
