import { Argument, type Command } from 'commander';
import { defaults } from '../../monitoring/build.ts';
import { type Form, forms } from '../../monitoring/render.ts';
import { append, endWith } from '../command-line.ts';
import type { RulesFlags } from './options.ts';
import { wrongArguments } from './run.ts';

const examples = `
Examples:
  sidelight rules alerts --jaeger http://jaeger:16686 > alerts.yaml
  sidelight rules operator --set exhausted=0.1 --set staleHttp=600 | kubectl apply -f -

Exit codes: 0 written, 2 wrong arguments.`;

/** `rules` of the command line. */
export function addRules(
  program: Command,
  exit: (code: number) => void,
  run: (form: Form, flags: RulesFlags) => void,
): void {
  program
    .command('rules')
    .description('write the rules for Prometheus: what is computed, and who is told of what; docs/alerts.md')
    .addArgument(new Argument('<form>', 'the two rule files, or a PrometheusRule with all').choices(forms))
    .option('--set <name=value>', 'a threshold; docs/alerts.md has them; may be repeated', append)
    .option('--runbooks <url>', 'what stands before NAME.md', defaults.runbooks)
    .option('--jaeger <url>', "Jaeger's page (default: the path of each search alone)")
    .option('--job <regex>', "Prometheus' label job of Sidelight's targets", defaults.job)
    .helpOption('--help', 'print this help')
    .addHelpText('after', examples)
    .exitOverride(endWith(exit, wrongArguments))
    .action(run);
}
