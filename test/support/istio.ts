import { execFileSync, spawn } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import type { TestContext } from 'vitest';
import { findEnvoy } from '../../setup/envoy.mjs';
import { type Cleanup, dieWithUs } from '../../src/lab/cleanup.ts';
import type { Json } from '../../src/lab/envoy-config.ts';
import { type EnvoyProcess, startEnvoy } from '../../src/lab/envoy-process.ts';
import { http1Client } from '../../src/lab/http1-client.ts';
import type { LoadClient } from '../../src/lab/load.ts';
import { type TempDir, tempDir } from '../../src/lab/temp-dir.ts';
import { type IstioNode, istioBootstrap } from './istio/bootstrap.ts';
import { type FixtureValues, writeFixtures } from './istio/fixtures.ts';
import { istioPorts } from './istio/net.ts';
import { writePki } from './istio/pki.ts';
import { startZtunnel } from './istio/ztunnel.ts';
import { needPart } from './part.ts';
import { until } from './until.ts';

/*
 * Istio's own config generator, and a stock Envoy that runs on what it generates; no Kubernetes. Skips the test where
 * EFCHECK, PEER_BIN or openssl is missing.
 *
 *   const net = await freeNet();                                  // '127.37.201': every address of the lab is in it
 *   const upstreams = await Upstreams.start({ ips: [`${net}.11`, `${net}.12`, `${net}.13`], port: istioPorts.endpoint });
 *   const proxy = await startIstioSidecar(context, cleanup, { net, sidelightPort, yaml: [envoyFilter, virtualService] });
 *   const client = await proxy.client();                          // straight to the sidecar's listener
 *   const proxy = await startIstioWaypoint(…);                    // the same; its client goes through HBONE
 *   const facts = efcheckFacts(context, cleanup, ['base.yaml', envoyFilter], { proxy: 'sidecar', labels: { app: 'client' } });
 *
 * `yaml` are texts, or names of files in test/fixtures/istio, whose README says what the mesh is.
 */

export { freeNet, istioPorts } from './istio/net.ts';

/** The address and name of service `web` in the fixtures. */
const webAddress = `10.2.0.10:${istioPorts.service}`;
const webHost = `web.app.svc.cluster.local:${istioPorts.service}`;

const waypointLabels = {
  'gateway.networking.k8s.io/gateway-name': 'waypoint',
  'gateway.istio.io/managed': 'istio.io-mesh-controller',
};

export interface IstioProxyOptions {
  /** As `freeNet` gives it. */
  net: string;
  /** Where the endpoint of service `sidelight` listens on 127.0.0.1. */
  sidelightPort: number;
  /** EnvoyFilters and others, beside the fixtures that the proxy needs. */
  yaml?: readonly string[];
  /** The mesh config; `mesh.yaml` unless told otherwise. */
  mesh?: string;
  /** Of Istio. */
  version?: string;
}

export interface IstioProxy {
  envoy: EnvoyProcess;
  /** A client of service `web` (unless a request says another `host`) with one connection, which passes the proxy. */
  client(): Promise<LoadClient>;
}

export interface IstioWaypoint extends IstioProxy {
  /** A port on 127.0.0.1 whose connections go through the waypoint to a service's address, such as `10.2.0.11:5432`. */
  tunnelTo: (target: string) => Promise<number>;
}

/** A sidecar of workload `client` in namespace `app`: its way out. */
export async function startIstioSidecar(
  context: TestContext,
  cleanup: Cleanup,
  options: IstioProxyOptions,
): Promise<IstioProxy> {
  const node: IstioNode = {
    type: 'sidecar',
    ip: `${options.net}.1`,
    workload: 'client',
    labels: { app: 'client' },
    version: options.version ?? '1.31.0',
  };
  const fixtures = ['base.yaml', 'sidelight.yaml', 'sidecar-loopback.yaml'];
  const { envoy } = await startProxy(context, cleanup, node, fixtures, options);
  return {
    envoy,
    client: () => Promise.resolve(webClient(cleanup, istioPorts.service, node.ip)),
  };
}

/** The waypoint of service `web`; its endpoint `.11` is reached by HBONE, through a stand-in for its node's ztunnel. */
export async function startIstioWaypoint(
  context: TestContext,
  cleanup: Cleanup,
  options: IstioProxyOptions,
): Promise<IstioWaypoint> {
  const ip = `${options.net}.20`;
  const node: IstioNode = {
    type: 'waypoint',
    ip,
    workload: 'waypoint',
    labels: waypointLabels,
    // For 1.30 and later the generator names filter state that only Istio's build of Envoy knows, and a stock one refuses.
    version: options.version ?? '1.29.0',
  };
  const fixtures = ['ambient.yaml', 'sidelight.yaml', 'waypoint.yaml', 'stock-waypoint.yaml'];
  const { envoy, pki } = await startProxy(context, cleanup, node, fixtures, options);
  const tunnelTo = async (target: string) => {
    const ztunnel = await startZtunnel({ waypoint: `${ip}:${istioPorts.hbone}`, pki, target });
    return cleanup.use(ztunnel).port;
  };
  return { envoy, tunnelTo, client: async () => webClient(cleanup, await tunnelTo(webAddress)) };
}

function webClient(cleanup: Cleanup, port: number, address?: string): LoadClient {
  const client = cleanup.use(http1Client(port, 1, address));
  const request: LoadClient['request'] = (url, options = {}) =>
    client.request(url, { ...options, headers: { host: webHost, ...options.headers } });
  return { ...client, request };
}

async function startProxy(
  context: TestContext,
  cleanup: Cleanup,
  node: IstioNode,
  fixtures: readonly string[],
  { net: prefix, sidelightPort, mesh = 'mesh.yaml', yaml = [] }: IstioProxyOptions,
): Promise<{ envoy: EnvoyProcess; pki: string }> {
  const programs = { efcheck: needPart(context, 'EFCHECK'), peer: needPart(context, 'PEER_BIN') };
  const dir = cleanup.use(tempDir());
  writePki(dir.path, needPart(context, 'OPENSSL'));
  const at = (last: number, port: number) => `${prefix}.${last}:${port}`;
  const [control, secrets] = [at(2, istioPorts.control), at(2, istioPorts.secrets)];
  const files = writeFixtures(dir.path, [mesh, ...fixtures, ...yaml], values(prefix, sidelightPort));
  await serve(cleanup, dir, programs.efcheck, ['-serve', control, '-mesh', ...files], control);
  const peer = [
    '-grpc',
    secrets,
    '-pki',
    dir.path,
    '-hbone',
    at(11, istioPorts.hbone),
    '-up',
    at(9, istioPorts.endpoint),
  ];
  await serve(cleanup, dir, programs.peer, peer, secrets);
  const config = istioBootstrap(node, control, secrets);
  return { envoy: cleanup.use(await startEnvoy({ bin: findEnvoy().path, config })), pki: dir.path };
}

function values(NET: string, SIDELIGHT_PORT: number): FixtureValues {
  return { NET, SIDELIGHT_PORT };
}

/** What the generator does when Istio's Envoy runs is left out: filters that only that build has. */
const stockEnv = { PILOT_ENABLE_METADATA_EXCHANGE: 'false', PILOT_ENABLE_ALPN_FILTER: 'false' };

/** Starts a program and waits until it listens. Throws with its own words when it ends before. */
async function serve(cleanup: Cleanup, dir: TempDir, bin: string, args: readonly string[], at: string): Promise<void> {
  const log = path.join(dir.path, `${path.basename(bin)}.log`);
  const output = openSync(log, 'a');
  const child = spawn(bin, args, { stdio: ['ignore', output, output], env: { ...process.env, ...stockEnv } });
  dieWithUs(child);
  cleanup.defer(() => child.kill('SIGKILL'));
  await until(`${bin} on ${at}`, async () => child.exitCode !== null || (await connects(at)));
  if (child.exitCode !== null) throw new Error(`${bin} ended:\n${readFileSync(log, 'utf8').slice(0, 4000)}`);
}

function connects(address: string): Promise<boolean> {
  const [host = '', port] = address.split(':');
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = net.connect({ host, port: Number(port) });
  socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  return promise.finally(() => socket.destroy());
}

export interface FactsOptions {
  proxy: 'sidecar' | 'waypoint' | 'router';
  /** `app` by default. */
  namespace?: string;
  /** Of the proxy's pod; a waypoint's are filled in. */
  labels?: Readonly<Record<string, string>>;
  /** Of Istio. */
  version?: string;
  /** The proxy's address: a sidecar's inbound side is that of the pod which has it. */
  ip?: string;
  /** More of the proxy's node metadata. */
  metadata?: Readonly<Record<string, unknown>>;
  /** More of `efcheck`'s environment: flags of istiod. */
  env?: Readonly<Record<string, string>>;
}

/** What Istio generates for a proxy: one line for each listener, chain, route and cluster, and the resources themselves. */
export interface Generated {
  facts: string[];
  listeners: Json[];
  clusters: Json[];
}

/** As `efcheckGenerates`, its lines alone. */
export function efcheckFacts(...args: Parameters<typeof efcheckGenerates>): string[] {
  return efcheckGenerates(...args).facts;
}

/**
 * What Istio generates for a proxy from the YAML. Throws, with its words, where the generator finds the YAML wrong; an
 * unknown field is wrong.
 */
export function efcheckGenerates(
  context: TestContext,
  cleanup: Cleanup,
  yaml: readonly string[],
  { proxy, namespace = 'app', labels, version = '1.31.0', metadata = {}, env = {}, ip }: FactsOptions,
): Generated {
  const bin = needPart(context, 'EFCHECK');
  const dir = cleanup.use(tempDir());
  const files = writeFixtures(dir.path, ['mesh.yaml', ...yaml], values('127.0.0', 50_051));
  const pairs = Object.entries(labels ?? (proxy === 'waypoint' ? waypointLabels : {})).map((pair) => pair.join('='));
  const who = ['-proxy', proxy, '-ns', namespace, '-id', `${proxy}-a`, '-labels', pairs.join(','), '-version', version];
  const address = ip ?? (proxy === 'waypoint' ? '127.0.0.20' : '127.0.0.1');
  const where = ['-ip', address, '-meta', JSON.stringify(metadata), '-dump', dir.path];
  const output = execFileSync(bin, [...who, ...where, '-mesh', ...files], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...stockEnv, ...env },
    maxBuffer: 64 << 20,
  });
  const dumped = (name: string) => JSON.parse(readFileSync(path.join(dir.path, name), 'utf8')) as Json[];
  return { facts: output.split('\n').filter(Boolean), listeners: dumped('lds.json'), clusters: dumped('cds.json') };
}
