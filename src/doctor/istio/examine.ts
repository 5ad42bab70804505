import { checkAuthority } from '../checks/authority.ts';
import { checkOurClusters } from '../checks/cluster.ts';
import { checkExtProcs } from '../checks/ext-proc.ts';
import { checkKey } from '../checks/key.ts';
import { checkLogs } from '../checks/logs.ts';
import { checkOrder } from '../checks/order.ts';
import { checkProfiles } from '../checks/profile.ts';
import type { ProxyFinding } from '../finding.ts';
import { proxyOf } from '../proxy.ts';
import type { Manifest } from '../read/yaml.ts';
import { envoyFiltersOf } from './envoy-filter.ts';
import { checkEverywhere } from './mesh.ts';
import { patchedChains } from './patched-chain.ts';
import { checkWaypoint } from './waypoint.ts';

/** What is said of Sidelight's own parts, wherever they are written. */
const partChecks = [checkExtProcs, checkOrder, checkLogs, checkKey, checkProfiles, checkOurClusters, checkAuthority];

/** Looks at the EnvoyFilters of all files together: the parts of one attachment may be spread over several. */
export function examineManifests(manifests: readonly Manifest[]): ProxyFinding[] {
  const filters = envoyFiltersOf(manifests);
  const parts = patchedChains(filters).flatMap(({ config, placeOf }) => {
    const proxy = proxyOf({ name: '' }, config);
    const found = partChecks.flatMap((check) => check(proxy));
    return found.map((one) => ({ ...one, where: placeOf(one.where) }));
  });
  return [
    ...filters.flatMap((filter) => [...checkWaypoint(filter, filters, manifests), ...checkEverywhere(filter)]),
    // A name that is wrong in a patch was told with its patch.
    ...parts.filter(({ id }) => id !== 'default-filter-name'),
  ];
}
