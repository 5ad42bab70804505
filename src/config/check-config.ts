import { type CheckOptions, checkYaml, formatProblem, type Problem } from '../lib/yaml-check.ts';
import { nodeAt, typeInWords } from './describe.ts';
import { type Config, configSchema } from './schema.ts';

export type CheckedConfig = { ok: true; config: Config } | { ok: false; problems: Problem[] };

/** Any part of the config, laid over what the file says: command line options and `OTEL_*` come in here. */
export type ConfigOverrides = DeepPartial<Config>;

type DeepPartial<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { [K in keyof T]?: DeepPartial<T[K]> | undefined }
    : T;

const words: CheckOptions = {
  expected(path) {
    const node = nodeAt(path);
    if (node === undefined) return undefined;
    return node.unit === undefined ? typeInWords(node) : `${typeInWords(node)} (${node.unit})`;
  },
  knownKeys: (path) => Object.keys(nodeAt(path)?.properties ?? {}),
  isSecret: (path) => nodeAt(path)?.secret === true,
};

/**
 * Checks a config text (YAML; `''` is all defaults) with overrides laid over it. All problems are told at once:
 * path, value, what was expected, and the line where it came from the text. Never throws.
 */
export function checkConfig(text: string, overrides: ConfigOverrides = {}): CheckedConfig {
  const checked = checkYaml(text, configSchema, { ...words, overrides });
  return checked.ok ? { ok: true, config: checked.value } : checked;
}

/** One line per problem. */
export function formatProblems(problems: readonly Problem[]): string {
  return problems.map(formatProblem).join('\n');
}
