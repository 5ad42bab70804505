import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';

export interface Blackhole {
  ip: string;
  port: number;
  close(): Promise<void>;
}

/**
 * Listens with a backlog of one in a thread that then sleeps for ever, so that nobody accepts. Its event loop must be
 * free while it says that it listens, hence the second message.
 */
const sleeper = `
const { parentPort, workerData } = require('node:worker_threads');
const server = require('node:net').createServer();
server.listen({ ...workerData, backlog: 1, exclusive: true }, () => parentPort.postMessage(server.address().port));
parentPort.once('message', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
`;

/**
 * An address where connecting is neither accepted nor refused: the listener's queue is full, so the kernel drops every
 * further SYN and a connect timeout runs out. A thread rather than a stopped child, because it cannot outlive us.
 */
export async function startBlackhole(ip: string, port = 0): Promise<Blackhole> {
  const worker = new Worker(sleeper, { eval: true, workerData: { host: ip, port } });
  const [listeningPort] = (await once(worker, 'message')) as [number];
  worker.postMessage('sleep');
  const fillers = await fillQueue(ip, listeningPort);
  return {
    ip,
    port: listeningPort,
    async close() {
      for (const socket of fillers) socket.destroy();
      await worker.terminate();
    },
  };
}

/** Connects until a connect hangs: on Linux a backlog of one holds two connections. */
async function fillQueue(ip: string, port: number): Promise<net.Socket[]> {
  const sockets: net.Socket[] = [];
  for (;;) {
    const socket = net.connect({ host: ip, port });
    socket.on('error', () => {});
    sockets.push(socket);
    const connected = await Promise.race([once(socket, 'connect').then(() => true), sleep(100, false)]);
    if (!connected) return sockets;
  }
}
