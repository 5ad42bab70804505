/*
 * What hides the Service of Sidelight from the sidecars of namespace `app`, and what only looks so. Beside the fixtures of
 * the little mesh; test/istio/doctor.test.ts asks Istio's own generator, test/unit/doctor-istio.test.ts the doctor.
 */

import { runAttach } from '../attach.ts';

export const sidelightCluster = 'outbound|50051||sidelight.sidelight.svc.cluster.local';

const service = (exportTo: string) => `apiVersion: v1
kind: Service
metadata: { name: sidelight, namespace: sidelight, annotations: { networking.istio.io/exportTo: "${exportTo}" } }
spec: { clusterIP: 10.2.0.50, selector: { app: sidelight }, ports: [{ name: grpc, port: 50051 }] }
`;
const sidecar = (name: string, namespace: string, spec: string) => `apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: { name: ${name}, namespace: ${namespace} }
spec: { ${spec} }
`;
const egress = (...hosts: string[]) => `egress: [{ hosts: ${JSON.stringify(hosts)} }]`;

interface Case {
  name: string;
  sidecars?: readonly string[];
  /** Of the Service. */
  exportTo?: string;
  /** Where Sidelight is attached; `--namespace app` unless told otherwise. */
  scope?: string;
}

/** What attaches Sidelight, and what it meets. */
export function objectsOf({ sidecars = [], exportTo = '*', scope = '--namespace app' }: Case): string {
  const flags = `--to sidecar-outbound ${scope} --service sidelight.sidelight`;
  return [runAttach(...flags.split(' ')), service(exportTo), ...sidecars].join('---\n');
}

/** For workloads `app: NAME` of namespace `app`. */
export const onlyItsNamespace = (app: string) =>
  sidecar(app, 'app', `workloadSelector: { labels: { app: ${app} } }, ${egress('./*')}`);

export const hidden: readonly Case[] = [
  { name: 'only its own namespace', sidecars: [sidecar('own', 'app', egress('./*'))] },
  { name: 'nothing', sidecars: [sidecar('nothing', 'app', egress('~/*'))] },
  { name: 'another host', sidecars: [sidecar('other', 'app', egress('sidelight/other.sidelight.svc.cluster.local'))] },
  { name: 'other domains', sidecars: [sidecar('other', 'app', egress('*/*.example.com'))] },
  { name: "the mesh's default", sidecars: [sidecar('default', 'istio-system', egress('./*', 'istio-system/*'))] },
  {
    name: "the workload's own, not the namespace's",
    sidecars: [sidecar('all', 'app', egress('*/*')), onlyItsNamespace('client')],
    scope: '--namespace app --selector app=client',
  },
  { name: 'a Service for its namespace alone', exportTo: '.' },
  { name: 'a Service for no namespace', exportTo: '~' },
  { name: 'a Service for others', exportTo: 'shop, pay' },
];

export const shown: readonly Case[] = [
  { name: 'no Sidecar' },
  { name: 'everything', sidecars: [sidecar('all', 'app', egress('*/*'))] },
  { name: 'its namespace', sidecars: [sidecar('named', 'app', egress('./*', 'sidelight/*'))] },
  { name: 'its host', sidecars: [sidecar('named', 'app', egress('*/sidelight.sidelight.svc.cluster.local'))] },
  { name: 'its domain', sidecars: [sidecar('named', 'app', egress('sidelight/*.sidelight.svc.cluster.local'))] },
  {
    name: 'a Sidecar without egress',
    sidecars: [sidecar('inbound', 'app', 'outboundTrafficPolicy: { mode: ALLOW_ANY }')],
  },
  { name: 'a Sidecar of another namespace', sidecars: [sidecar('other', 'sidelight', egress('./*'))] },
  {
    name: 'a Sidecar of other workloads',
    sidecars: [onlyItsNamespace('others')],
    scope: '--namespace app --selector app=client',
  },
  {
    name: "the namespace's own before the mesh's default",
    sidecars: [sidecar('default', 'istio-system', egress('./*')), sidecar('all', 'app', egress('*/*'))],
  },
  {
    name: 'the second listener',
    sidecars: [
      sidecar(
        'two',
        'app',
        'egress: [{ hosts: ["./*"], port: { number: 9000, protocol: HTTP, name: http } }, { hosts: ["sidelight/*"] }]',
      ),
    ],
  },
  { name: 'a Service for this namespace', exportTo: 'app' },
  { name: 'a Service for all', exportTo: '*' },
];
