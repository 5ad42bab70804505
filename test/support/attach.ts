import { createProgram } from '../../src/cli/program.ts';

/** What `sidelight attach` writes. Throws, with what it says, if it ends otherwise than with 0. */
export function runAttach(...args: readonly string[]): string {
  const { code, out, err } = attachEnds(...args);
  if (code !== 0) throw new Error(`attach ended with ${code}: ${err}`);
  return out;
}

/** How `sidelight attach` ends, and what it writes. */
export function attachEnds(...args: readonly string[]): CommandEnd {
  return commandEnds('attach', ...args);
}

export interface CommandEnd {
  code: number;
  out: string;
  err: string;
}

/** How a command that writes ends, and what it writes. What commander itself says goes to the real stderr. */
export function commandEnds(...args: readonly string[]): CommandEnd {
  const end = { code: -1, out: '', err: '' };
  const program = createProgram(
    {
      version: '0.0.0',
      env: {},
      now: () => 0,
      monotonicMs: () => 0,
      random: () => 0,
      out: (text) => {
        end.out += `${text}\n`;
      },
      err: (text) => {
        end.err += `${text}\n`;
      },
      stopped: () => new Promise(() => undefined),
      self: { node: '', flags: [], entry: '' },
      colour: false,
    },
    (code) => {
      end.code = code;
    },
  );
  program.parse(args, { from: 'user' });
  return end;
}

/** An EnvoyFilter for namespace `app`, but for what would make a test slow, or wrong where the machine is busy. */
export function attachedInMesh(target: string, place = '--service sidelight.sidelight'): string {
  const flags = `${target} --namespace app --profile full --message-timeout 1s ${place}`;
  return runAttach(...flags.split(' ')).replace('buffer_flush_interval: 1s', 'buffer_flush_interval: 0.05s');
}
