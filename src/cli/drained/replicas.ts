import { addressesOf, nameOf, type Resolve } from './addresses.ts';
import { clustersAnswer, endpointsAnswer, pinsAnswer, reportersAnswer } from './answers.ts';
import { type Address, type Asked, type AskLimits, ask, reasonOf } from './ask.ts';
import type { Target } from './options.ts';
import { type ClosedConnection, closedOf, type Snapshot, snapshotOf } from './snapshot.ts';

export interface AskReplicasOptions {
  from: readonly URL[];
  target: Target;
  /** For each answer of each replica, ms. */
  timeoutMs: number;
  maxBytes: number;
  resolve: Resolve;
  now: () => number;
}

/** What a replica said, and its own word for its start, by which a restart is told. */
export interface ReplicaWord {
  snapshot: Snapshot;
  started: number;
}

/** What one replica answered, or why it did not. */
export interface ReplicaAnswer {
  address: Address;
  name: string;
  /** Its name still leads there; a pod that is gone is no longer in the answer of a headless Service. */
  isNamed: boolean;
  asked: Asked<ReplicaWord>;
}

/** Asks all replicas, those known from before too: one that is not ready has left its Service and may still hear. */
export async function askReplicas(
  options: AskReplicasOptions,
  known: readonly Address[],
  signal: AbortSignal,
): Promise<ReplicaAnswer[]> {
  const resolved = await Promise.all(options.from.map((url) => resolveOne(url, options)));
  const lost = resolved.flatMap((one) => ('asked' in one ? [one] : []));
  const named = new Map(resolved.flatMap((one) => ('asked' in one ? [] : one)).map((one) => [nameOf(one), one]));
  // A name that cannot be resolved now says nothing of those that it led to.
  const isLost = ({ url }: Address) => lost.some(({ address }) => address.url === url);
  const others = known.filter((address) => !named.has(nameOf(address)));
  const asking = [
    ...Array.from(named.values(), (address) => ({ address, isNamed: true })),
    ...others.map((address) => ({ address, isNamed: isLost(address) })),
  ];
  const answers = await Promise.all(
    asking.map(async ({ address, isNamed }) => {
      const asked = await askOne(address, options, signal);
      return { address, name: nameOf(address), isNamed, asked };
    }),
  );
  return [...answers, ...lost];
}

async function resolveOne(url: URL, { resolve, timeoutMs }: AskReplicasOptions): Promise<Address[] | ReplicaAnswer> {
  try {
    return await addressesOf(url, resolve, timeoutMs);
  } catch (error) {
    const address = { url, address: undefined };
    const asked = { ok: false, reason: 'replica_unreachable', detail: `${url.href}: ${reasonOf(error)}` } as const;
    return { address, name: nameOf(address), isNamed: true, asked };
  }
}

async function askOne(address: Address, options: AskReplicasOptions, signal: AbortSignal): Promise<Asked<ReplicaWord>> {
  const { target } = options;
  const limits = limitsOf(options, signal);
  const query = new URLSearchParams({ [target.kind]: target.text });
  const [endpoints, reporters] = await Promise.all([
    ask(address, `api/v1/endpoints?${query.toString()}`, endpointsAnswer, limits),
    ask(address, 'api/v1/reporters', reportersAnswer, limits),
  ]);
  if (!endpoints.ok) return endpoints;
  if (!reporters.ok) return reporters;
  const snapshot = snapshotOf(endpoints.value, reporters.value, options.now());
  return { ok: true, value: { snapshot, started: endpoints.value.startedMs } };
}

/** What of `/api/v1/clusters` is about the name, over all that answer it. */
export interface NameKnowledge {
  isKnown: boolean;
  /** The latest words of sources that fail. */
  errors: ReadonlyMap<string, string>;
}

/** Which clusters ask for the name, and what is wrong with the sources. A replica that does not say it adds nothing. */
export async function askClusters(
  addresses: readonly Address[],
  options: AskReplicasOptions,
  signal: AbortSignal,
): Promise<NameKnowledge> {
  const { target } = options;
  const all = await Promise.all(
    addresses.map((address) => ask(address, 'api/v1/clusters', clustersAnswer, limitsOf(options, signal))),
  );
  const clusters = all.flatMap((asked) => (asked.ok ? asked.value.clusters : []));
  const isKnown = target.kind === 'host' && clusters.some(({ subject, stale }) => subject === target.text && !stale);
  const failing = clusters.flatMap(({ cluster, lastError }) =>
    lastError === undefined ? [] : [[cluster, lastError] as const],
  );
  return { isKnown, errors: new Map(failing) };
}

/** Connections that some replica knows to be closed. One that does not say it adds nothing. */
export async function askClosed(
  addresses: readonly Address[],
  options: AskReplicasOptions,
  signal: AbortSignal,
): Promise<ClosedConnection[]> {
  const all = await Promise.all(
    addresses.map(async (address) => {
      const asked = await ask(address, 'api/v1/pins', pinsAnswer, limitsOf(options, signal));
      return asked.ok ? closedOf(asked.value, options.now()) : [];
    }),
  );
  return all.flat();
}

function limitsOf({ timeoutMs, maxBytes }: AskReplicasOptions, signal: AbortSignal): AskLimits {
  return { timeoutMs, maxBytes, signal };
}
