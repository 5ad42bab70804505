import { once } from 'node:events';
import net from 'node:net';

/** A port that leads to another one, which may be known later; closed, nobody answers at it. */
export interface Gate {
  url: string;
  leadTo(port: number): void;
  close(): void;
}

export async function openGate(): Promise<Gate> {
  const sockets = new Set<net.Socket>();
  let target: number | undefined;
  const keep = (socket: net.Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
    return socket;
  };
  const server = net.createServer((near) => {
    keep(near);
    if (target === undefined) {
      near.destroy();
      return;
    }
    const far = keep(net.connect({ host: '127.0.0.1', port: target }));
    near.pipe(far).pipe(near);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`,
    leadTo(port) {
      target = port;
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
