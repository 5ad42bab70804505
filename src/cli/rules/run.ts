import { buildRules } from '../../monitoring/build.ts';
import { type Form, renderRules } from '../../monitoring/render.ts';
import type { Surroundings } from '../serve/serve.ts';
import { parseRules, type RulesFlags } from './options.ts';

/** As of the other commands. */
export const wrongArguments = 2;

/** Writes the rules to stdout. The exit code: 0, or 2 with every mistake on stderr. */
export function rules(form: Form, flags: RulesFlags, { out, err }: Pick<Surroundings, 'out' | 'err'>): number {
  const parsed = parseRules(flags);
  if (!parsed.ok) {
    err(parsed.problems.map((problem) => `sidelight rules: ${problem}`).join('\n'));
    return wrongArguments;
  }
  out(renderRules(buildRules(parsed.options), form).trimEnd());
  return 0;
}
