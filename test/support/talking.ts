import { setTimeout as sleep } from 'node:timers/promises';
import type { Cleanup } from '../../src/lab/cleanup.ts';
import type { EnvoyProcess } from '../../src/lab/envoy-process.ts';
import { type TcpClient, tcpClient } from '../../src/lab/tcp-client.ts';

/** Keeps bytes flowing over Envoy's TCP listener until it is closed, or the test ends. */
export async function keepTalking(cleanup: Cleanup, envoy: EnvoyProcess): Promise<TcpClient> {
  const client = await tcpClient(envoy.port('tcp'));
  const ending = new AbortController();
  const talk = async () => {
    while (!ending.signal.aborted && !client.closed()) {
      await client.exchange('hello');
      await sleep(50);
    }
  };
  const done = talk().catch(() => undefined);
  const close = async () => {
    ending.abort();
    await done;
    await client.close();
  };
  cleanup.defer(close);
  return { ...client, close };
}
