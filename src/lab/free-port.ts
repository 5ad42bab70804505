import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';

/**
 * Below what Linux gives to whoever asks for any port, every client's connection for one (32768 to 60999 by default): of
 * those one that is free may be taken a moment later.
 */
const [lowest, highest] = [20_000, 32_000] as const;

/**
 * A TCP port where nobody listens on any of the addresses. Connecting to it is refused at once. Another process may take
 * it later: where a port can be chosen by listening on 0, do that instead.
 */
export async function freePort(addresses: readonly string[] = ['127.0.0.1']): Promise<number> {
  for (;;) {
    const port = randomInt(lowest, highest);
    if (await isFreeOnAll(addresses, port)) return port;
  }
}

/** Whether nobody listens on a TCP port on any of the addresses. */
export async function isFreeOnAll(addresses: readonly string[], port: number): Promise<boolean> {
  const servers: net.Server[] = [];
  try {
    for (const address of addresses) {
      const server = net.createServer();
      servers.push(server);
      server.listen({ host: address, port, exclusive: true });
      await once(server, 'listening');
    }
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false;
    throw error;
  } finally {
    for (const server of servers) server.close();
  }
}
