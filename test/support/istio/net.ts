import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';

/** Ports that Istio fixes; where no port can be chosen, an address is. */
export const istioPorts = { service: 8080, endpoint: 18_080, hbone: 15_008, control: 15_010, secrets: 50_061 } as const;

/** The first three numbers of a loopback network (`127.37.201`) on which every one of Istio's ports is free. */
export async function freeNet(): Promise<string> {
  for (;;) {
    const prefix = `127.${randomInt(1, 255)}.${randomInt(1, 255)}`;
    const free = await Promise.all(Object.values(istioPorts).map((port) => isFree(`${prefix}.1`, port)));
    if (free.every(Boolean)) return prefix;
  }
}

async function isFree(host: string, port: number): Promise<boolean> {
  const server = net.createServer();
  try {
    server.listen({ host, port, exclusive: true });
    await once(server, 'listening');
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false;
    throw error;
  } finally {
    server.close();
  }
}
