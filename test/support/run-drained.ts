import type { DrainedFlags } from '../../src/cli/drained/options.ts';
import { type DrainedSurroundings, drained } from '../../src/cli/drained/run.ts';
import type { FakeReplica } from './fake-replica.ts';

export interface DrainedRun {
  code: number;
  out: string;
  err: string[];
}

export interface RunOptions {
  target?: string;
  flags?: Partial<DrainedFlags>;
  resolve?: DrainedSurroundings['resolve'];
  /** Resolves when a signal comes, with its name. */
  stopped?: Promise<string>;
  onErr?: (line: string) => void;
}

/** `sidelight drained` in this process, with a quiet time of 300 ms and a timeout of 1.5 s unless told otherwise. */
export async function runDrained(
  replicas: readonly Pick<FakeReplica, 'url'>[],
  { target = '10.0.0.7', flags = {}, resolve, stopped = new Promise(() => {}), onErr }: RunOptions = {},
): Promise<DrainedRun> {
  const out: string[] = [];
  const err: string[] = [];
  const code = await drained(
    target,
    { quietFor: '300ms', timeout: '1500ms', from: replicas.map(({ url }) => url), ...flags },
    {
      now: Date.now,
      monotonicMs: () => performance.now(),
      out: (text) => void out.push(text),
      err: (text) => {
        err.push(text);
        onErr?.(text);
      },
      stopped: () => stopped,
      ...(resolve === undefined ? {} : { resolve }),
    },
  );
  return { code, out: out.join('\n'), err };
}
