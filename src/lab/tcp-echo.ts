import { once } from 'node:events';
import net from 'node:net';

/** A TCP server that sends back what it gets and counts, on one IP. */
export interface TcpEcho {
  ip: string;
  port: number;
  /** Bytes received since the start. */
  bytes(): number;
  openConnections(): number;
  /** Closes every open connection (FIN). */
  cycle(): void;
  /** Breaks every open connection (RST). */
  reset(): void;
  /** Takes no connection any more; those that are open go on. */
  refuse(): void;
  close(): Promise<void>;
}

export async function startTcpEcho(ip: string, port = 0): Promise<TcpEcho> {
  const sockets = new Set<net.Socket>();
  let bytes = 0;
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      bytes += chunk.length;
      socket.write(chunk);
    });
    socket.once('close', () => sockets.delete(socket));
  });
  const closed = new Promise<void>((resolve) => {
    server.once('close', resolve);
  });
  server.listen({ host: ip, port, exclusive: true });
  await once(server, 'listening');
  const cycle = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    ip,
    port: (server.address() as net.AddressInfo).port,
    bytes: () => bytes,
    openConnections: () => sockets.size,
    cycle,
    reset() {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    refuse: () => void server.close(),
    async close() {
      server.close();
      cycle();
      await closed;
    },
  };
}
