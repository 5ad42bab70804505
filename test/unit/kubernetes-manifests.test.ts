import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/check-config.ts';
import { parseHostPort } from '../../src/lib/host-port.ts';
import { type Container, oneOf, readManifests, readManifestText } from '../support/manifests.ts';

const base = readManifests(
  ...['namespace', 'service-account', 'rbac', 'deployment', 'disruption-budget', 'services', 'network-policy'].map(
    (name) => `base/${name}.yaml`,
  ),
);
const deployment = oneOf(base, 'Deployment').spec;
const pod = deployment.template.spec;
const [shared] = pod.containers as [Container];
const samePod = oneOf(readManifests('components/same-pod/sidecar.yaml'), 'Deployment').spec.template.spec;
const [sidecar] = samePod.initContainers as [Container];
const labels = { 'app.kubernetes.io/name': 'sidelight' };

function configOf(file: string) {
  const checked = checkConfig(readManifestText(file));
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
  return checked.config;
}
const sharedConfig = configOf('base/sidelight.yaml');
const sidecarConfig = configOf('components/same-pod/sidelight.yaml');

function portOf(address: string): number | undefined {
  return parseHostPort(address)?.port;
}
function mebibytes(text: string | undefined): number {
  const [, number] = /^(\d+)Mi$/.exec(text ?? '') ?? [];
  return Number(number);
}

const locked = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } };

describe('what the containers may do', () => {
  it('the shared pod is a user other than root, with no capability, on a root that it cannot write', () => {
    expect(shared.securityContext).toEqual(locked);
    expect(pod.securityContext).toEqual({
      runAsNonRoot: true,
      runAsUser: 10001,
      runAsGroup: 10001,
      fsGroup: 10001,
      seccompProfile: { type: 'RuntimeDefault' },
    });
  });

  it('the sidecar is so by itself: the pod is somebody else’s', () => {
    expect(sidecar.securityContext).toEqual({
      ...locked,
      runAsNonRoot: true,
      runAsUser: 10001,
      runAsGroup: 10001,
      seccompProfile: { type: 'RuntimeDefault' },
    });
  });

  it('the namespace refuses pods that may do more', () => {
    expect(oneOf(base, 'Namespace').metadata.labels).toEqual({ 'pod-security.kubernetes.io/enforce': 'restricted' });
  });

  it.each([
    ['shared', shared, pod.volumes, sharedConfig],
    ['same-pod', sidecar, samePod.volumes, sidecarConfig],
  ] as const)('%s: the state file is on an emptyDir, which alone is writable', (_, container, volumes, config) => {
    const writable = container.volumeMounts.filter(({ readOnly }) => readOnly !== true);
    expect(writable).toHaveLength(1);
    expect(config.discovery.stateFile?.startsWith(`${writable[0]?.mountPath}/`)).toBe(true);
    expect(volumes).toContainEqual({ name: writable[0]?.name, emptyDir: { sizeLimit: '32Mi' } });
  });
});

describe('what Sidelight may do with the API', () => {
  const rules = [{ apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] }];
  const subjects = [{ kind: 'ServiceAccount', name: 'sidelight', namespace: 'sidelight' }];
  const roleRef = (kind: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind, name: 'sidelight' });

  it('lists and watches EndpointSlices, and nothing else', () => {
    expect(oneOf(base, 'ClusterRole').rules).toEqual(rules);
    expect(oneOf(base, 'ClusterRoleBinding')).toMatchObject({ roleRef: roleRef('ClusterRole'), subjects });
  });

  it('restricted: the same, by a Role in each named namespace', () => {
    const roles = readManifests('overlays/restricted/roles.yaml');
    expect(roles.map(({ kind, metadata: { namespace } }) => `${kind} ${namespace}`)).toEqual([
      'Role shop',
      'RoleBinding shop',
      'Role payments',
      'RoleBinding payments',
    ]);
    expect(roles.filter(({ kind }) => kind === 'Role').map((role) => role.rules)).toEqual([rules, rules]);
    const binding = { roleRef: roleRef('Role'), subjects };
    expect(roles.filter(({ kind }) => kind === 'RoleBinding')).toMatchObject([binding, binding]);
  });

  it('restricted: the config differs in the namespaces that it names, those of the roles', () => {
    const { discovery, ...rest } = configOf('overlays/restricted/sidelight.yaml');
    const { discovery: inAny, ...sharedRest } = sharedConfig;
    expect(rest).toEqual(sharedRest);
    expect(discovery).toEqual({ ...inAny, kubernetes: { ...inAny.kubernetes, namespaces: ['shop', 'payments'] } });
  });

  it('a token is mounted only if the config has a use for it', () => {
    expect(oneOf(base, 'ServiceAccount')).toMatchObject({ automountServiceAccountToken: false });
    expect(pod.serviceAccountName).toBe('sidelight');
    expect(pod.automountServiceAccountToken).toBe(sharedConfig.discovery.kubernetes.enabled);
  });
});

describe('a pod’s life', () => {
  it('has time for the word to spread and for the whole shutdown before it is killed', () => {
    const preStopSeconds = shared['lifecycle'] as { preStop: { sleep: { seconds: number } } };
    const neededMs = preStopSeconds.preStop.sleep.seconds * 1000 + sharedConfig.shutdownMs;
    expect(neededMs).toBe(20_000);
    expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThanOrEqual(neededMs * 1.5);
  });

  it('a new pod is known to Envoys before an old one leaves', () => {
    expect(deployment.replicas).toBe(2);
    expect(deployment.strategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 });
    expect(deployment.minReadySeconds).toBeGreaterThanOrEqual(10);
  });

  it('a node may be drained, but only one replica at a time', () => {
    const { maxUnavailable, unhealthyPodEvictionPolicy } = oneOf(base, 'PodDisruptionBudget').spec;
    expect([maxUnavailable, unhealthyPodEvictionPolicy]).toEqual([1, 'AlwaysAllow']);
  });

  it('is ready when gRPC health says so, and is restarted only if HTTP is dead for a minute', () => {
    expect(shared['readinessProbe']).toMatchObject({ grpc: { port: portOf(sharedConfig.listen.grpc) } });
    expect(shared['startupProbe']).toMatchObject({ httpGet: { path: '/readyz', port: 'http' } });
    expect(shared['livenessProbe']).toMatchObject({
      httpGet: { path: '/healthz', port: 'http' },
      periodSeconds: 10,
      failureThreshold: 6,
    });
  });

  it('the sidecar can neither hold up the start of its pod nor take it out of service', () => {
    expect(sidecar.restartPolicy).toBe('Always');
    expect(Object.keys(sidecar).filter((key) => key.endsWith('Probe'))).toEqual(['livenessProbe']);
  });

  it.each([
    ['shared', shared],
    ['same-pod', sidecar],
  ])('%s: the heap and what is outside it fit the memory limit; CPU is not throttled', (_, container) => {
    const { requests, limits } = container.resources;
    const [, heap] = /^--max-old-space-size=(\d+)$/.exec(container.env[0]?.value ?? '') ?? [];
    expect(container.env[0]?.name).toBe('NODE_OPTIONS');
    expect(mebibytes(limits['memory']) - Number(heap)).toBeGreaterThanOrEqual(110);
    expect(mebibytes(requests['memory'])).toBeLessThan(mebibytes(limits['memory']));
    expect(Object.keys(limits)).toEqual(['memory']);
  });
});

describe('what belongs together', () => {
  it('every selector finds the pods', () => {
    expect(deployment.template.metadata['labels']).toMatchObject(labels);
    const [monitor] = readManifests('overlays/monitoring/podmonitor.yaml');
    const selectors = [
      deployment.selector.matchLabels,
      ...pod.topologySpreadConstraints.map(({ labelSelector }) => labelSelector.matchLabels),
      oneOf(base, 'PodDisruptionBudget').spec.selector.matchLabels,
      oneOf(base, 'NetworkPolicy').spec.podSelector.matchLabels,
      oneOf(base, 'Service', 'sidelight').spec.selector,
      oneOf(base, 'Service', 'sidelight-replicas').spec.selector,
      monitor?.spec.selector.matchLabels,
    ];
    expect(selectors).toEqual(selectors.map(() => labels));
    expect(selectors).toHaveLength(8);
  });

  it('the ports are those that the config listens on', () => {
    const [grpc, http] = [portOf(sharedConfig.listen.grpc), portOf(sharedConfig.listen.http)];
    expect(shared.ports).toEqual([
      { name: 'grpc', containerPort: grpc },
      { name: 'http', containerPort: http },
    ]);
    for (const name of ['sidelight', 'sidelight-replicas'])
      expect(oneOf(base, 'Service', name).spec.ports).toEqual([
        { name: 'grpc', appProtocol: 'grpc', port: grpc, targetPort: 'grpc' },
        { name: 'http', appProtocol: 'http', port: http, targetPort: 'http' },
      ]);
    const [fromEnvoys, fromJobs] = oneOf(base, 'NetworkPolicy').spec.ingress;
    expect([fromEnvoys?.ports, fromJobs?.ports]).toEqual([[{ port: grpc }], [{ port: http }]]);
    const [annotated] = readManifests('overlays/monitoring/annotations.yaml');
    expect(annotated?.spec.template.metadata).toMatchObject({ annotations: { 'prometheus.io/port': String(http) } });
    const [monitor] = readManifests('overlays/monitoring/podmonitor.yaml');
    expect(monitor?.spec.podMetricsEndpoints).toEqual([{ port: 'http', path: '/metrics' }]);
  });

  it('all addresses are listened on where others connect, and loopback where only the pod does', () => {
    expect(sharedConfig.listen).toEqual({ grpc: '0.0.0.0:50051', http: '0.0.0.0:9464' });
    expect(sidecarConfig.listen).toEqual({ grpc: '127.0.0.1:50051', http: '0.0.0.0:9464' });
    expect(sidecar.ports).toEqual([{ name: 'sidelight-http', containerPort: 9464 }]);
  });

  it('a name for every replica has no address of its own', () => {
    expect(oneOf(base, 'Service', 'sidelight-replicas').spec.clusterIP).toBe('None');
  });

  it('the config is mounted where the command looks for it', () => {
    for (const { args, volumeMounts } of [shared, sidecar]) {
      expect(args).toEqual(['serve', '--config', '/etc/sidelight/sidelight.yaml']);
      expect(volumeMounts).toContainEqual(expect.objectContaining({ mountPath: '/etc/sidelight', readOnly: true }));
    }
  });

  it('the image is that of this version, and has the user and the ports of the manifests', () => {
    const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
    const { version } = JSON.parse(read('package.json')) as { version: string };
    for (const folder of ['base', 'components/same-pod'])
      expect(readManifestText(`${folder}/kustomization.yaml`)).toContain(
        `  - name: sidelight\n    newName: sidelight\n    newTag: ${version}\n`,
      );
    expect(read('Dockerfile')).toMatch(/^USER 10001:10001$/m);
    expect(read('Dockerfile')).toMatch(/^EXPOSE 50051 9464$/m);
  });
});
