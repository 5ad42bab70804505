import type { Endpoint } from '../model/endpoint.ts';
import type { UpstreamConnection } from '../model/upstream-connection.ts';
import type { ClusterView, DiscoveryView } from '../model/view.ts';

/** The connections of one node to one cluster. */
interface Group {
  cluster: string;
  nodeId: string;
  members: Set<Member>;
  /** The list that they were last compared with. */
  listed: ReadonlyMap<string, number> | undefined;
  /** Addresses that passed to another endpoint, as of the same time: of those no connection is plainly on the one listed. */
  earlier: ClusterView['earlier'];
}

interface Member {
  /** As of its latest entry. */
  connection: UpstreamConnection;
  /** As of its first entry, and so always: texts of which the hashes are known. */
  peer: Endpoint;
  group: Group;
}

/**
 * Which connections in use may be pins, without a look at each of them every second: one whose endpoint is listed is
 * looked at again when the list of its cluster has lost one. All 10,000 of test/bench/endpoints.ts took 25 ms a second
 * with 1,000 clusters and 9 with one; so it is 3 where 100 endpoints leave every second, and 0.1 where none does.
 */
export class Suspects {
  readonly #bySerial = new Map<number, Member>();
  readonly #groups = new Map<string, Group>();
  /** Those that are new, or were not listed when last looked at, or may have left their list since. */
  readonly #watched = new Set<Member>();

  /** Takes a connection that is known. False: it is not. */
  update(connection: UpstreamConnection): boolean {
    const member = this.#bySerial.get(connection.serial);
    if (member !== undefined) member.connection = connection;
    return member !== undefined;
  }

  add(connection: UpstreamConnection): void {
    const group = this.#groupOf(connection);
    const member = { connection, peer: connection.peer, group };
    this.#bySerial.set(connection.serial, member);
    group.members.add(member);
    this.#watched.add(member);
  }

  /** It is no longer in use. */
  delete({ serial }: UpstreamConnection): void {
    const member = this.#bySerial.get(serial);
    if (member === undefined) return;
    const { group } = member;
    this.#bySerial.delete(serial);
    this.#watched.delete(member);
    group.members.delete(member);
    if (group.members.size === 0) this.#groups.delete(groupKey(group));
  }

  /** All that are not plainly listed, and those of the ones that were not when last asked that `also` names. */
  find(view: DiscoveryView, also: (connection: UpstreamConnection) => boolean): UpstreamConnection[] {
    for (const group of this.#groups.values()) this.#watchUnlisted(group, view);
    const found: UpstreamConnection[] = [];
    for (const member of this.#watched) {
      const { connection, peer, group } = member;
      if (also(connection) || !isPlainlyListed(peer, group)) found.push(connection);
      else this.#watched.delete(member);
    }
    return found;
  }

  #watchUnlisted(group: Group, view: DiscoveryView): void {
    const now = view.cluster(group.cluster, group.nodeId);
    const { listed: before, earlier } = group;
    if (now?.listed === before && now?.earlier === earlier) return;
    group.listed = now?.listed;
    group.earlier = now?.earlier;
    // Where nothing left, those that were listed are so still, and the others are watched already.
    const passedOn = now?.earlier !== earlier;
    if (!passedOn && (before === undefined || !hasLost(before, now?.listed))) return;
    for (const member of group.members) if (!isPlainlyListed(member.peer, group)) this.#watched.add(member);
  }

  #groupOf({ cluster, reporter: { nodeId } }: UpstreamConnection): Group {
    const key = groupKey({ cluster, nodeId });
    const known = this.#groups.get(key);
    if (known !== undefined) return known;
    const group = { cluster, nodeId, members: new Set<Member>(), listed: undefined, earlier: undefined };
    this.#groups.set(key, group);
    return group;
  }
}

function hasLost(before: ReadonlyMap<string, number>, now: Group['listed']): boolean {
  for (const key of before.keys()) if (now?.has(key) !== true) return true;
  return false;
}

/** Whether an endpoint is listed in the very spelling that Envoy gives. False is no verdict. */
function isPlainlyListed({ text, ip }: Endpoint, { listed, earlier }: Pick<Group, 'listed' | 'earlier'>): boolean {
  if (listed === undefined || (ip !== undefined && earlier?.has(ip))) return false;
  return (ip !== undefined && listed.has(ip)) || listed.has(text);
}

function groupKey({ cluster, nodeId }: Pick<Group, 'cluster' | 'nodeId'>): string {
  return `${nodeId}\n${cluster}`;
}
