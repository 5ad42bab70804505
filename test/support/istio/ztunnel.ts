import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http2 from 'node:http2';
import net from 'node:net';
import path from 'node:path';
import type { Duplex } from 'node:stream';

export interface ZtunnelOptions {
  /** The waypoint's `ip:port`. */
  waypoint: string;
  /** The folder that `writePki` filled. */
  pki: string;
  /** The service's address, for which each tunnel asks: `10.2.0.10:8080`. */
  target: string;
}

export interface Ztunnel {
  /** On 127.0.0.1: what connects here is tunnelled. */
  port: number;
  close(): void;
}

/**
 * Plays the ztunnel of the client's node: each TCP connection becomes a CONNECT tunnel of one HTTP/2 connection with mutual
 * TLS. The waypoint's certificate is not looked at: what it names is an identity, no host.
 */
export async function startZtunnel({ waypoint, pki, target }: ZtunnelOptions): Promise<Ztunnel> {
  const session = http2.connect(`https://${waypoint}`, {
    cert: readFileSync(path.join(pki, 'leaf.pem')),
    key: readFileSync(path.join(pki, 'leaf.key')),
    rejectUnauthorized: false,
  });
  await once(session, 'connect');
  session.on('error', ignore);
  const server = net.createServer((socket) => {
    const tunnel = session.request({ ':method': 'CONNECT', ':authority': target }, { endStream: false });
    tunnel.once('response', ({ ':status': status }) => (status === 200 ? join(socket, tunnel) : socket.destroy()));
    socket.once('close', () => tunnel.close());
    tunnel.once('close', () => socket.destroy());
    socket.on('error', ignore);
    tunnel.on('error', ignore);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as net.AddressInfo).port,
    close() {
      server.close();
      session.destroy();
    },
  };
}

function join(socket: net.Socket, tunnel: Duplex): void {
  socket.pipe(tunnel).pipe(socket);
}

/** What breaks is closed on both sides. */
function ignore(): void {}
