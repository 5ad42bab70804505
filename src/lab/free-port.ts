import { once } from 'node:events';
import net from 'node:net';

/**
 * A TCP port where nobody listens on any of the addresses, taken from the kernel's own choice. Connecting to it is
 * refused at once. Another process may take it later: where a port can be chosen by listening on 0, do that instead.
 */
export async function freePort(addresses: readonly string[] = ['127.0.0.1']): Promise<number> {
  for (;;) {
    const port = await portFreeOnAll(addresses);
    if (port !== undefined) return port;
  }
}

async function portFreeOnAll(addresses: readonly string[]): Promise<number | undefined> {
  const servers: net.Server[] = [];
  let port = 0;
  try {
    for (const address of addresses) {
      const server = net.createServer();
      servers.push(server);
      server.listen({ host: address, port, exclusive: true });
      await once(server, 'listening');
      port = (server.address() as net.AddressInfo).port;
    }
    return port;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined;
    throw error;
  } finally {
    for (const server of servers) server.close();
  }
}
