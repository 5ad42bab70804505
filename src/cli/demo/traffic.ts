import { http1Client } from '../../lab/http1-client.ts';
import { drive, type LoadClient } from '../../lab/load.ts';
import type { Stage } from './stage.ts';

export interface Traffic {
  client: LoadClient;
  /** Resolves when what was in flight is done. */
  stop: () => Promise<void>;
}

/** Keeps sending to a cluster until `stop`. */
export function keepSending(stage: Stage, cluster: string): Traffic {
  const client = http1Client(stage.port, 4);
  const ending = new AbortController();
  const done = drive(() => client.request(`/${cluster}`), { concurrency: 4, pauseMs: 20, signal: ending.signal });
  return {
    client,
    stop: async () => {
      ending.abort();
      await done;
      client.close();
    },
  };
}
