import { text } from 'node:stream/consumers';
import { examine, type Report } from '../../doctor/examine.ts';
import { readYaml } from '../../doctor/read/yaml.ts';
import type { Surroundings } from '../serve/serve.ts';
import { askProxy, type ReadInput, readProxy, readText } from './gather.ts';
import { type DoctorFlags, type DoctorOptions, parseDoctor } from './options.ts';
import { reportText } from './report.ts';

export type DoctorSurroundings = Pick<Surroundings, 'out' | 'err'> & {
  /** Absent: the process's own. */
  input?: ReadInput;
};

/** Exit codes of `sidelight doctor`; docs/doctor/README.md. */
export const exitCodes = { fine: 0, warnings: 1, errors: 2, couldNotLook: 3, wrongArguments: 4 } as const;

/** Looks at what proxies say of themselves, or at YAML before it is applied, and tells what is wrong. */
export async function doctor(
  targets: readonly string[],
  flags: DoctorFlags,
  around: DoctorSurroundings,
): Promise<number> {
  const parsed = parseDoctor(targets, flags);
  if (!parsed.ok) {
    around.err(parsed.problems.map((problem) => `sidelight doctor: ${problem}`).join('\n'));
    return exitCodes.wrongArguments;
  }
  const report = await reportOf(parsed.options, around);
  around.out(parsed.options.json ? JSON.stringify({ exitCode: exitCodeOf(report), ...report }) : reportText(report));
  return exitCodeOf(report);
}

async function reportOf(
  { urls, yamlFiles, proxyFiles, timeoutMs, ...rest }: DoctorOptions,
  around: DoctorSurroundings,
) {
  const input = around.input ?? (() => text(process.stdin));
  const asked = await Promise.all(urls.map((url) => askProxy(url, timeoutMs)));
  const given = [];
  for (const files of proxyFiles) given.push(await readProxy(files, input));
  const written = [];
  for (const file of yamlFiles) written.push(readYaml(file, await readText(file, input)));
  return examine({ proxies: [...asked, ...given], files: written, ...rest });
}

/** What could not be looked at is never fine; an error that was found is worse. */
function exitCodeOf({ findings, isWhole }: Report): number {
  if (findings.some(({ severity }) => severity === 'error')) return exitCodes.errors;
  if (!isWhole) return exitCodes.couldNotLook;
  return findings.some(({ severity }) => severity === 'warning') ? exitCodes.warnings : exitCodes.fine;
}
