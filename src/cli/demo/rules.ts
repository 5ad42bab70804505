import { buildRules } from '../../monitoring/build.ts';
import { renderRules } from '../../monitoring/render.ts';

/** By how much the demo's time is shorter: an hour is half a minute, and five minutes are 2.5 s. */
const timeScale = 1 / 120;

/** The rules that are shipped, in the demo's time: file name → text. `jaeger`: where links to traces lead. */
export function demoRules(jaeger: string | undefined): Record<string, string> {
  const rules = buildRules({ timeScale, ...(jaeger === undefined ? {} : { links: { jaeger } }) });
  return { 'rules.yaml': renderRules(rules, 'recording'), 'alerts.yaml': renderRules(rules, 'alerts') };
}
