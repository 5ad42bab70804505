import type { DoctorFlags } from '../../src/cli/doctor/options.ts';
import { doctor } from '../../src/cli/doctor/run.ts';
import type { Report } from '../../src/doctor/examine.ts';

export interface DoctorRun {
  code: number;
  out: string;
  err: string;
}

/** `sidelight doctor` in this process. */
export async function runDoctor(
  targets: readonly string[],
  flags: Partial<DoctorFlags> = {},
  input = '',
): Promise<DoctorRun> {
  const out: string[] = [];
  const err: string[] = [];
  const code = await doctor(
    targets,
    { timeout: '10s', rootNamespace: 'istio-system', ...flags },
    {
      out: (line) => void out.push(line),
      err: (line) => void err.push(line),
      input: () => Promise.resolve(input),
    },
  );
  return { code, out: out.join('\n'), err: err.join('\n') };
}

/** The same with `--json`, parsed. */
export async function doctorReport(
  targets: readonly string[],
  flags: Partial<DoctorFlags> = {},
): Promise<Report & { exitCode: number }> {
  const { out } = await runDoctor(targets, { ...flags, json: true });
  return JSON.parse(out) as Report & { exitCode: number };
}

/** The ids that were found and are worth a change, each once, sorted. */
export function worries({ findings }: Report): string[] {
  return [...new Set(findings.filter(({ severity }) => severity !== 'info').map(({ id }) => id))].toSorted();
}
