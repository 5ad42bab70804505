import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import type { ConfigInput } from '../../config/schema.ts';
import { dieWithUs } from '../../lab/cleanup.ts';
import { tempDir } from '../../lab/temp-dir.ts';
import { readSamples, type Sample } from './prometheus-text.ts';

/** How to start this very program again. */
export interface Program {
  node: string;
  /** Node's own. */
  flags: readonly string[];
  /** The file to run. */
  entry: string;
}

/** A pin, as `/api/v1/pins` tells it. Times epoch ms. */
export interface ApiPin {
  cluster: string;
  endpoint: string;
  layer: 'http' | 'tcp';
  pin: string;
  connectionId: string;
  ageMs: number;
  leftAtMs?: number;
  lastUsedMs: number;
  clearedMs?: number;
  how?: string;
  advice?: { reason: string; changes: string[] };
}

/** An exchange, as `/api/v1/exchanges` tells it. */
export interface ApiExchange {
  startMs: number;
  durationMs: number;
  outcome: string;
  path: string;
  cluster: string;
  code?: number;
  pin?: string;
  traceId?: string;
  attempts: {
    number: number;
    endpoint: string;
    result: string;
    cause?: string;
    offsetMs: number;
    durationMs: number;
    code?: number;
    connectionId?: string;
    connectionAgeMs?: number;
  }[];
}

/** What discovery knows of a cluster, as `/api/v1/clusters` tells it. */
export interface ApiCluster {
  cluster: string;
  listed: { endpoint: string; sinceMs: number }[];
  left: { endpoint: string; leftAtMs: number }[];
}

export interface SidelightProcess {
  pid: number;
  grpcPort: number;
  httpUrl: string;
  samples(): Promise<Sample[]>;
  pins(): Promise<{ pins: ApiPin[]; cleared: ApiPin[] }>;
  exchanges(outcome?: string): Promise<ApiExchange[]>;
  clusters(): Promise<ApiCluster[]>;
  get(path: string): Promise<string>;
  /** Its exit code, when it ends; `null` if a signal ended it. */
  ended: Promise<number | null>;
  close(): Promise<void>;
}

/** Starts `sidelight serve` with this config, on free ports unless it names others, and waits until it listens. */
export async function startSidelight(program: Program, config: ConfigInput): Promise<SidelightProcess> {
  const dir = tempDir();
  const file = path.join(dir.path, 'sidelight.yaml');
  const listen = { grpc: '127.0.0.1:0', http: '127.0.0.1:0' };
  writeFileSync(file, stringify({ listen, ...config }));
  const child = spawn(program.node, [...program.flags, program.entry, 'serve', '--config', file], {
    // Over the channel it learns of our end, however we end.
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  dieWithUs(child);
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  const close = async () => {
    await stop(child);
    dir.close();
  };
  try {
    const { grpcPort, httpPort } = await listening(child);
    const api = apiOf(`http://127.0.0.1:${httpPort}`);
    return { ...api, pid: child.pid ?? 0, grpcPort, ended, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Reads the log line that says where it listens: its ports were the kernel's choice. */
async function listening(child: ChildProcess): Promise<{ grpcPort: number; httpPort: number }> {
  let log = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-65_536);
  });
  const deadline = performance.now() + 15_000;
  while (performance.now() < deadline && child.exitCode === null) {
    const found = /"event":"listening".*?"grpc":"[^"]*:(\d+)".*?"http":"[^"]*:(\d+)"/.exec(log);
    if (found) return { grpcPort: Number(found[1]), httpPort: Number(found[2]) };
    await sleep(20);
  }
  throw new Error(`sidelight did not come up:\n${log}`);
}

function apiOf(httpUrl: string): Omit<SidelightProcess, 'pid' | 'grpcPort' | 'ended' | 'close'> {
  const get = async (where: string) => {
    const answer = await fetch(`${httpUrl}${where}`);
    if (!answer.ok) throw new Error(`${where} answered ${answer.status}`);
    return answer.text();
  };
  const json = async <T>(where: string) => JSON.parse(await get(where)) as T;
  return {
    httpUrl,
    get,
    samples: async () => readSamples(await get('/metrics')),
    pins: () => json('/api/v1/pins'),
    clusters: async () => (await json<{ clusters: ApiCluster[] }>('/api/v1/clusters')).clusters,
    async exchanges(outcome) {
      const query = outcome === undefined ? '' : `?outcome=${outcome}`;
      return (await json<{ exchanges: ApiExchange[] }>(`/api/v1/exchanges${query}`)).exchanges;
    },
  };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  const hard = setTimeout(() => child.kill('SIGKILL'), 5_000);
  await gone;
  clearTimeout(hard);
}
