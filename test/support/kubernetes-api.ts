import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'vitest';
import { type Cleanup, dieWithUs } from '../../src/lab/cleanup.ts';
import { freePort } from '../../src/lab/free-port.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { type KubernetesRequests, kubernetesRequests } from './kubernetes-requests.ts';
import { needPart } from './part.ts';
import { until } from './until.ts';

/** A real API server with its etcd. No controller runs: nothing changes but by a test. */
export interface KubernetesApi {
  /** `https://127.0.0.1:PORT`, the same after a restart. */
  url: string;
  /** The file with the certificate that signed the server's. */
  caFile: string;
  /** The private key that signs service accounts' tokens, PEM. */
  tokenKey: string;
  /** As somebody who may do everything. */
  admin: KubernetesRequests;
  adminToken: string;
  /** As the holder of a token. */
  as(token: string): KubernetesRequests;
  /** A token of a service account, made by the server itself. The account is created if it is not there. */
  serviceAccountToken(namespace: string, name: string): Promise<string>;
  /** Writes a kubeconfig with this token and returns its path. `server`: another one with the same certificate. */
  kubeconfig(token: string, server?: string): string;
  /** Ends the API server, as a crash does. Its data stay. */
  stop(): Promise<void>;
  /** Starts it again on the same port with the same data; resolves when it is ready. */
  start(): Promise<void>;
  /** Makes etcd forget every version but the present one. */
  compact(): Promise<void>;
}

const adminToken = 'token-of-the-admin-of-this-test';
const extraFlags = [
  '--authorization-mode=RBAC',
  '--service-cluster-ip-range=10.0.0.0/24',
  '--service-account-issuer=https://kubernetes.default.svc',
  // No controller creates the account that each pod would need.
  '--disable-admission-plugins=ServiceAccount',
];

/** Skips the test where a program is missing; needs 3 s and 350 MiB. */
export async function startKubernetesApi(context: TestContext, cleanup: Cleanup): Promise<KubernetesApi> {
  const bin = { etcd: needPart(context, 'ETCD_BIN'), server: needPart(context, 'KUBE_APISERVER_BIN') };
  // A port that was free may be another's by the time it is listened on: then the process ends at once, and others are tried.
  for (let tries = 3; ; tries -= 1) {
    const api = await tryToOpen(cleanup, bin);
    if (api !== undefined) return api;
    if (tries === 1) throw new Error('etcd or kube-apiserver found its port taken, three times');
  }
}

async function tryToOpen(cleanup: Cleanup, bin: { etcd: string; server: string }): Promise<KubernetesApi | undefined> {
  const dir = cleanup.use(tempDir()).path;
  const [client, peer, port] = [await freePort(), await freePort(), await freePort()];
  const etcdUrl = `http://127.0.0.1:${client}`;
  const url = `https://127.0.0.1:${port}`;
  const log = path.join(dir, 'log');
  const { privateKey: tokenKey } = writeKeys(dir);
  const etcd = run(cleanup, bin.etcd, etcdFlags(dir, etcdUrl, `http://127.0.0.1:${peer}`), log);
  const caFile = path.join(dir, 'certs/apiserver.crt');
  const as = (token: string) => kubernetesRequests(url, readFileSync(caFile, 'utf8'), token);
  const isReady = async () =>
    existsSync(caFile) &&
    (
      await as(adminToken)
        .ask('GET', '/readyz')
        .catch(() => undefined)
    )?.status === 200;
  let server: ChildProcess;
  const start = async () => {
    server = run(cleanup, bin.server, [...extraFlags, ...serverFlags(dir, etcdUrl, port)], log);
    const hasEnded = () => server.exitCode !== null || etcd.exitCode !== null;
    await until('the API server', async () => hasEnded() || (await isReady()), 60_000);
  };
  await start();
  if (!(await isReady())) {
    if (/address already in use/.test(readFileSync(log, 'utf8'))) return undefined;
    throw new Error(`kube-apiserver or etcd did not start:\n${readFileSync(log, 'utf8').slice(-4000)}`);
  }
  const admin = as(adminToken);
  let kubeconfigs = 0;
  return {
    url,
    caFile,
    tokenKey,
    admin,
    adminToken,
    as,
    serviceAccountToken: async (namespace, name) => serviceAccountToken(admin, namespace, name),
    kubeconfig(token, at = url) {
      const file = path.join(dir, `kubeconfig-${(kubeconfigs += 1)}.yaml`);
      writeFileSync(file, kubeconfigOf({ url: at, caFile, token }));
      return file;
    },
    async stop() {
      const ended = once(server, 'exit');
      server.kill('SIGKILL');
      await ended;
    },
    start,
    compact: async () => compact(etcdUrl),
  };
}

function run(cleanup: Cleanup, bin: string, flags: readonly string[], log: string): ChildProcess {
  const output = openSync(log, 'a');
  const child = spawn(bin, flags, { stdio: ['ignore', output, output] });
  dieWithUs(child);
  cleanup.defer(() => child.kill('SIGKILL'));
  return child;
}

function writeKeys(dir: string) {
  const keys = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  writeFileSync(path.join(dir, 'sa.key'), keys.privateKey);
  writeFileSync(path.join(dir, 'sa.pub'), keys.publicKey);
  writeFileSync(path.join(dir, 'tokens.csv'), `${adminToken},admin,1,"system:masters"\n`);
  return keys;
}

function etcdFlags(dir: string, clientUrl: string, peerUrl: string): string[] {
  return [
    ['data-dir', path.join(dir, 'etcd')],
    ['listen-client-urls', clientUrl],
    ['advertise-client-urls', clientUrl],
    ['listen-peer-urls', peerUrl],
    ['initial-advertise-peer-urls', peerUrl],
    ['initial-cluster', `default=${peerUrl}`],
  ].map(([name, value]) => `--${name}=${value}`);
}

function serverFlags(dir: string, etcdUrl: string, port: number): string[] {
  return [
    `--etcd-servers=${etcdUrl}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    `--cert-dir=${path.join(dir, 'certs')}`,
    `--service-account-key-file=${path.join(dir, 'sa.pub')}`,
    `--service-account-signing-key-file=${path.join(dir, 'sa.key')}`,
    `--token-auth-file=${path.join(dir, 'tokens.csv')}`,
  ];
}

async function serviceAccountToken(admin: KubernetesRequests, namespace: string, name: string): Promise<string> {
  await admin.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } });
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
  const url = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
  const { status, body } = await admin.ask<{ status?: { token?: string } }>('POST', url, request);
  if (body.status?.token === undefined) throw new Error(`no token for ${name}: ${status} ${JSON.stringify(body)}`);
  return body.status.token;
}

function kubeconfigOf({ url, caFile, token }: { url: string; caFile: string; token: string }): string {
  // JSON is YAML.
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    clusters: [{ name: 'test', cluster: { server: url, 'certificate-authority': caFile } }],
    users: [{ name: 'test', user: { token } }],
  });
}

/** etcd answers JSON too: https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/ */
async function compact(etcdUrl: string): Promise<void> {
  const ask = async (what: string, body: unknown) => {
    const answer = await fetch(`${etcdUrl}/v3/kv/${what}`, { method: 'POST', body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`etcd ${what}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as { header: { revision: string } };
  };
  const { header } = await ask('range', { key: Buffer.from('compaction').toString('base64') });
  await ask('compaction', { revision: header.revision, physical: true });
}
