import type { KubernetesObject } from './kubernetes-requests.ts';

/** A pod as a slice has it. Ready, unless told otherwise. */
export interface SlicePod {
  ip: string;
  uid: string;
  ready?: boolean;
  terminating?: boolean;
}

const serviceLabel = 'kubernetes.io/service-name';

/** An EndpointSlice of a Service with these pods, as the endpoint slice controller would write it. */
export function sliceOf(
  { namespace, service, name = `${service}-1` }: { namespace: string; service: string; name?: string },
  pods: readonly SlicePod[],
): KubernetesObject {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, namespace, labels: { [serviceLabel]: service } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints: pods.map(({ ip, uid, ready = true, terminating = false }) => ({
      addresses: [ip],
      conditions: { ready: ready && !terminating, serving: ready, terminating },
      targetRef: { kind: 'Pod', namespace, name: uid, uid },
    })),
  };
}

const groups = { endpointslices: 'discovery.k8s.io', pods: '' };

/** Some verbs on one resource in one namespace, bound to a service account. */
export function roleOf(
  { namespace, account, resource }: { namespace: string; account: string; resource: keyof typeof groups },
  verbs: readonly string[],
): KubernetesObject[] {
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  const metadata = { name: account, namespace };
  return [
    {
      apiVersion,
      kind: 'Role',
      metadata,
      rules: [{ apiGroups: [groups[resource]], resources: [resource], verbs }],
    },
    {
      apiVersion,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: account },
      subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
    },
  ];
}
