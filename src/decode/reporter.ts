import { isInboundCluster } from '../model/cluster-name.ts';
import type { Reporter, ReporterKind } from '../model/reporter.ts';
import { plainValues, textValue } from './struct.ts';
import { cutText } from './text.ts';
import type { WireNode } from './wire-types.ts';

/** What tells one proxy from another, wherever it was read. `undefined` or empty: not said. */
interface NodeFacts {
  id?: string | undefined;
  cluster?: string | undefined;
  workload?: string | undefined;
  namespace?: string | undefined;
  pod?: string | undefined;
  envoyVersion?: string | undefined;
}

/** Istio's node ids are `sidecar~IP~POD.NAMESPACE~DOMAIN`; any other id is a plain Envoy. */
const kindOfIstioType: Record<string, ReporterKind> = {
  sidecar: 'sidecar_outbound',
  waypoint: 'waypoint',
  router: 'gateway',
};

/** An Istio id names a pod, a namespace and a domain: DNS names, of 253 characters at most. */
const longestIdBytes = 1024;

/** The proxy behind a node. A sidecar counts as outbound until `reporterOf` sees the cluster. */
export function reporterOfFacts(facts: NodeFacts, maxTextBytes: number): Reporter {
  // A piece of a text holds the whole of it in memory for as long as the piece lives, so that the whole is cut first.
  const id = cutText(facts.id ?? '', longestIdBytes);
  const [type = '', , podAndNamespace = ''] = id.split('~');
  const kind = Object.hasOwn(kindOfIstioType, type) && podAndNamespace !== '' ? kindOfIstioType[type] : undefined;
  // A pod's name may have dots, a namespace never.
  const dot = kind === undefined ? -1 : podAndNamespace.lastIndexOf('.');
  const namespace = dot < 0 ? '' : podAndNamespace.slice(dot + 1);
  const cut = (text: string): string => cutText(text, maxTextBytes);
  return {
    kind: kind ?? 'envoy',
    workload: cut(facts.workload || workloadOf(facts.cluster, namespace) || id || 'envoy'),
    namespace: cut(facts.namespace || namespace),
    pod: cut(facts.pod || (dot < 0 ? '' : podAndNamespace.slice(0, dot))),
    nodeId: cut(id),
    envoyVersion: cut(facts.envoyVersion ?? ''),
  };
}

/** Istio names a node's cluster `WORKLOAD.NAMESPACE`; a tagged request tells of its workload by nothing else. */
function workloadOf(cluster: string | undefined, namespace: string): string | undefined {
  const suffix = `.${namespace}`;
  const isIstios = namespace !== '' && cluster !== undefined && cluster !== suffix && cluster.endsWith(suffix);
  return isIstios ? cluster.slice(0, -suffix.length) : cluster;
}

/** The proxy behind a log stream's node. */
export function reporterOfNode(node: WireNode | undefined, maxTextBytes: number): Reporter {
  const metadata = plainValues(node?.metadata);
  return reporterOfFacts(
    {
      id: node?.id,
      cluster: node?.cluster,
      workload: textValue(metadata, 'WORKLOAD_NAME'),
      namespace: textValue(metadata, 'NAMESPACE'),
      pod: textValue(metadata, 'NAME'),
      envoyVersion: versionText(node),
    },
    maxTextBytes,
  );
}

function versionText(node: WireNode | undefined): string | undefined {
  const version = node?.userAgentBuildVersion?.version;
  if (version === undefined) return node?.userAgentVersion;
  return `${version.majorNumber ?? 0}.${version.minorNumber ?? 0}.${version.patch ?? 0}`;
}

/** The reporter of one request: a sidecar's inbound clusters are its other side. */
export function reporterOf(base: Reporter, cluster: string | undefined): Reporter {
  const inbound = base.kind === 'sidecar_outbound' && cluster !== undefined && isInboundCluster(cluster);
  return inbound ? { ...base, kind: 'sidecar_inbound' } : base;
}
