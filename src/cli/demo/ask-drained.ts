import { drained } from '../drained/run.ts';
import { hostOf, type Stage } from './stage.ts';

/** What `sidelight drained` says of the endpoints that left a cluster of the demo: its exit code and its lines. */
export async function askDrained(
  stage: Stage,
  cluster: string,
  flags: { quietFor: string; timeout: string },
): Promise<{ command: string; exitCode: number; lines: string[] }> {
  const lines: string[] = [];
  const host = hostOf(cluster);
  const exitCode = await drained(
    host,
    { ...flags, from: [stage.sidelight.httpUrl] },
    {
      now: Date.now,
      monotonicMs: () => performance.now(),
      out: (text) => lines.push(...text.split('\n')),
      err: () => undefined,
      stopped: () => new Promise(() => undefined),
    },
  );
  const command = `sidelight drained ${host} --quiet-for ${flags.quietFor} --timeout ${flags.timeout}`;
  return { command, exitCode, lines };
}
