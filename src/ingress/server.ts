import type { ServerOptions } from 'node:http2';
import { logVerbosity, Server, ServerCredentials, setLogVerbosity } from '@grpc/grpc-js';
import type { DecodeLimits } from '../decode/limits.ts';
import { SidelightError } from '../lib/errors.ts';
import { AccessLogService, accessLogDefinition } from './access-log-service.ts';
import type { IngressCounters } from './counters.ts';
import { createExtProcService, extProcDefinition } from './ext-proc-service.ts';
import { HealthService, healthDefinition } from './health.ts';
import type { LogSink } from './log-stream.ts';
import type { Tagger } from './tagger.ts';
import { openToAll, removeLeftSocket, socketPath } from './unix-socket.ts';

/** Bounds on what peers may send and hold open. */
export interface IngressLimits extends DecodeLimits {
  /** Access log streams open at once; further ones are refused. */
  logStreams: number;
  /** ext_proc streams open at once; further ones are ended at once, and their requests go on untagged. */
  processStreams: number;
}

export interface IngressOptions {
  limits: IngressLimits;
  tagger: Tagger;
  logSink: LogSink;
  counters: IngressCounters;
  /** Wall clock, epoch ms. */
  now: () => number;
  /** Milliseconds of a clock that never goes back. */
  monotonicMs: () => number;
  /** Uniform in [0, 1). */
  random: () => number;
  /** Age from which a log stream is ended at its next message, ±20 %. */
  logStreamMaxAgeMs: number;
  /** How often a peer is asked whether it is there, and how long it may take to answer. Absent: 20 s. */
  keepaliveMs?: number;
}

/** The gRPC edge. Until `setServing(true)` its health service says NOT_SERVING. */
export interface Ingress {
  /**
   * Listens on `host:port` and resolves to the port; port 0 takes a free one. Or on `unix:/path`. Rejects with
   * `listen_failed`.
   */
  bind(address: string): Promise<number>;
  setServing(serving: boolean): void;
  /**
   * Ends in order: not serving, no new connections, log streams ended with OK, requests under way answered. What is
   * left after `graceMs` is cut. Resolves when nothing is open.
   */
  drain(graceMs: number): Promise<void>;
}

/**
 * grpc-js ends a stream at its own bound without a word to us. Ours comes first and is counted; theirs only keeps a
 * still larger message out of memory.
 */
const transportBoundFactor = 2;

/**
 * A machine that is gone closes nothing: without asking, its streams would stay for ever, and its connections seem in
 * use. Envoy asks too, every ten seconds (envoy/*.yaml), but that is for its own sake.
 */
const defaultKeepaliveMs = 20_000;

/** Room for health checks beside the streams of the two APIs. */
const healthStreams = 100;

/**
 * Envoy resets each ext_proc stream after its last answer, so resets come at the rate of requests. Node's HTTP/2 server
 * takes them for an attack by default: above 33 a second, after 1,000, it cuts the connection and all streams on it
 * (measured with Envoy 1.40 at 200 requests/s: every 6 s). test/e2e/ingress.test.ts.
 */
const resetsPerSecond = 100_000;

/** grpc-js has no option for it; its HTTP/2 servers are made, at `bindAsync`, from this field. */
function allowResets(server: Server): void {
  const { commonServerOptions } = server as unknown as { commonServerOptions: ServerOptions };
  Object.assign(commonServerOptions, { streamResetBurst: resetsPerSecond, streamResetRate: resetsPerSecond });
}

export function createIngress(options: IngressOptions): Ingress {
  const {
    limits,
    counters,
    logSink: sink,
    now,
    monotonicMs,
    random,
    tagger,
    keepaliveMs = defaultKeepaliveMs,
  } = options;
  // It would write plain lines among the JSON of stderr; what matters of it arrives as an error.
  setLogVerbosity(logVerbosity.NONE);
  const health = new HealthService();
  const accessLog = new AccessLogService({ limits, counters, sink, now, random, maxAgeMs: options.logStreamMaxAgeMs });
  const server = new Server({
    'grpc.max_receive_message_length': limits.messageBytes * transportBoundFactor,
    // Per connection. Our own bounds are over all of them and answer; this one only keeps a peer waiting.
    'grpc.max_concurrent_streams': limits.processStreams + limits.logStreams + healthStreams,
    'grpc.keepalive_time_ms': keepaliveMs,
    'grpc.keepalive_timeout_ms': keepaliveMs,
  });
  allowResets(server);
  server.addService(accessLogDefinition(limits), accessLog.implementation);
  server.addService(
    extProcDefinition(limits, monotonicMs),
    createExtProcService({ limits, counters, tagger, monotonicMs }),
  );
  server.addService(healthDefinition, health.implementation);
  return {
    bind: (address) => bind(server, address),
    setServing: (serving) => health.setServing(serving),
    async drain(graceMs) {
      health.setServing(false);
      health.endWatches();
      accessLog.endAll(graceMs / 2);
      await shutDown(server, graceMs);
    },
  };
}

async function bind(server: Server, address: string): Promise<number> {
  const socket = socketPath(address);
  try {
    if (socket !== undefined) await removeLeftSocket(socket);
    const port = await listen(server, address);
    if (socket !== undefined) openToAll(socket);
    return port;
  } catch (cause) {
    throw new SidelightError('listen_failed', { path: address, cause });
  }
}

function listen(server: Server, address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) resolve(port);
      else reject(error);
    });
  });
}

async function shutDown(server: Server, graceMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const cut = setTimeout(() => server.forceShutdown(), graceMs);
    server.tryShutdown(() => {
      clearTimeout(cut);
      resolve();
    });
  });
}
