import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';

/** An object of the Kubernetes API. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string> };
  rules?: unknown;
  roleRef?: unknown;
  subjects?: unknown;
  data?: Record<string, string>;
  spec: Spec;
  [field: string]: unknown;
}

/** What tests look at, of every kind: what an object has of it, its kind says. */
interface Spec {
  replicas: number;
  minReadySeconds: number;
  strategy: { rollingUpdate: unknown };
  selector: { matchLabels: unknown };
  template: { metadata: Record<string, unknown>; spec: PodSpec };
  maxUnavailable: number;
  unhealthyPodEvictionPolicy: string;
  podSelector: { matchLabels: unknown };
  ingress: { ports: unknown }[];
  ports: unknown;
  clusterIP: string;
  podMetricsEndpoints: unknown;
}

interface PodSpec {
  serviceAccountName: string;
  automountServiceAccountToken: boolean;
  terminationGracePeriodSeconds: number;
  topologySpreadConstraints: { labelSelector: { matchLabels: unknown } }[];
  securityContext: unknown;
  initContainers: Container[];
  containers: Container[];
  volumes: unknown;
}

export interface Container {
  name: string;
  image: string;
  restartPolicy?: string;
  args: string[];
  env: { name: string; value: string }[];
  ports: { name: string; containerPort: number }[];
  resources: { requests: Record<string, string>; limits: Record<string, string> };
  securityContext: Record<string, unknown>;
  volumeMounts: { name: string; mountPath: string; readOnly?: boolean }[];
  [probe: string]: unknown;
}

export function readManifestText(file: string): string {
  return readFileSync(new URL(`../../k8s/${file}`, import.meta.url), 'utf8');
}

/** Every object of these files under `k8s/`. */
export function readManifests(...files: string[]): Manifest[] {
  return files.flatMap((file) => parseManifests(readManifestText(file)));
}

export function parseManifests(text: string): Manifest[] {
  return parseAllDocuments(text).map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    return document.toJS() as Manifest;
  });
}

/** The one of this kind (and name). Throws where there is none or several. */
export function oneOf(objects: readonly Manifest[], kind: string, name?: string): Manifest {
  const found = objects.filter((each) => each.kind === kind && (name === undefined || each.metadata.name === name));
  const [only] = found;
  if (only === undefined || found.length > 1) throw new Error(`${found.length} of ${kind} ${name ?? ''}`);
  return only;
}
