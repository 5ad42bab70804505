import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Child, startChild } from './child.ts';
import { EnvoyAdmin } from './envoy-admin.ts';
import type { Bootstrap } from './envoy-config.ts';
import { tempDir } from './temp-dir.ts';

export interface EnvoyOptions {
  /** Path of the binary. */
  bin: string;
  config: Bootstrap;
  /** Worker threads. One by default: each worker has its own connection pools and log stream. */
  concurrency?: number;
  /** How long to wait for `/ready`, ms. */
  readyTimeoutMs?: number;
}

export interface EnvoyProcess {
  pid: number;
  admin: EnvoyAdmin;
  /** The port that a listener really has; throws for a listener that the config does not name. */
  port(listener: string): number;
  /** What Envoy wrote, its last 64 KiB. */
  logs(): string;
  /** SIGTERM, then SIGKILL after two seconds; resolves when it is gone. May be called twice. */
  close(): Promise<void>;
}

/** Starts a real Envoy and waits until it is ready. Throws with Envoy's own words when it does not come up. */
export async function startEnvoy(options: EnvoyOptions): Promise<EnvoyProcess> {
  const dir = tempDir();
  const configFile = path.join(dir.path, 'envoy.json');
  const adminFile = path.join(dir.path, 'admin');
  writeFileSync(configFile, JSON.stringify(options.config));
  const baseIdFile = path.join(dir.path, 'base-id');
  // Not --disable-hot-restart: it is the hot restart code that ends Envoy with the process that started it (1.40).
  const args = [
    '--use-dynamic-base-id',
    '--base-id-path',
    baseIdFile,
    '--concurrency',
    String(options.concurrency ?? 1),
    '--log-level',
    'warning',
  ];
  args.push('--config-path', configFile, '--admin-address-path', adminFile);
  // An access log in a file is read while Envoy runs; by default Envoy writes it every ten seconds.
  args.push('--file-flush-interval-msec', '50');
  const child = startChild(options.bin, args, dir.path);
  const close = async () => {
    await child.stop();
    removeSharedMemory(baseIdFile);
    dir.close();
  };
  try {
    const admin = await ready(child, adminFile, options.readyTimeoutMs ?? 15_000);
    const ports = await listenerPorts(admin);
    return {
      pid: child.process.pid as number,
      admin,
      port: (listener) => {
        const port = ports.get(listener);
        if (port === undefined) throw new Error(`no listener ${listener}; there are ${[...ports.keys()].join(', ')}`);
        return port;
      },
      logs: child.logs,
      close,
    };
  } catch (error) {
    await close();
    throw new Error(`Envoy did not come up: ${(error as Error).message}\n${child.logs()}`, { cause: error });
  }
}

/** For hot restarts Envoy makes a file in shared memory, named after its base id and epoch 0, and leaves it behind. */
function removeSharedMemory(baseIdFile: string): void {
  if (!existsSync(baseIdFile)) return;
  const baseId = readFileSync(baseIdFile, 'utf8').trim();
  rmSync(`/dev/shm/envoy_shared_memory_${baseId}0`, { force: true });
}

async function ready(child: Child, adminFile: string, timeoutMs: number): Promise<EnvoyAdmin> {
  const deadline = performance.now() + timeoutMs;
  while (performance.now() < deadline) {
    const failure = child.failure();
    if (failure) throw failure;
    const admin = adminAt(adminFile);
    if (admin && (await isReady(admin))) return admin;
    await sleep(20);
  }
  throw new Error(`not ready after ${timeoutMs} ms`);
}

function adminAt(file: string): EnvoyAdmin | undefined {
  if (!existsSync(file)) return undefined;
  const port = Number(readFileSync(file, 'utf8').split(':').at(-1));
  return port > 0 ? new EnvoyAdmin(port) : undefined;
}

async function isReady(admin: EnvoyAdmin): Promise<boolean> {
  try {
    await admin.get('/ready');
    return true;
  } catch {
    return false;
  }
}

async function listenerPorts(admin: EnvoyAdmin): Promise<Map<string, number>> {
  const answer = await admin.json<{
    listener_statuses?: { name: string; local_address: { socket_address?: { port_value: number } } }[];
  }>('/listeners?format=json');
  const ports = new Map<string, number>();
  // An internal listener has no port.
  for (const { name, local_address: address } of answer.listener_statuses ?? [])
    if (address.socket_address !== undefined) ports.set(name, address.socket_address.port_value);
  return ports;
}
