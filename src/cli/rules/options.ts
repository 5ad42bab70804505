import { nearName } from '../../lib/near-name.ts';
import { shortText } from '../../lib/short-text.ts';
import type { RulesOptions } from '../../monitoring/build.ts';
import { type ParameterName, parameterNames, parameters, type Thresholds } from '../../monitoring/parameters.ts';

/** The command line of `rules`, as typed. Absent: not given. */
export interface RulesFlags {
  set?: readonly string[];
  runbooks: string;
  jaeger?: string;
  job: string;
}

export type ParsedRules = { ok: true; options: RulesOptions } | { ok: false; problems: string[] };

/** What the rules are to be written with, or every mistake. */
export function parseRules({ set = [], runbooks, jaeger = '', job }: RulesFlags): ParsedRules {
  const problems: string[] = [];
  const thresholds: Partial<Thresholds> = {};
  for (const text of set) {
    const { name, value, problem } = parseThreshold(text);
    if (problem === undefined) thresholds[name] = value;
    else problems.push(`--set ${shortText(text)}: ${problem}`);
  }
  if (jaeger !== '' && !isWebAddress(jaeger))
    problems.push(`--jaeger: found ${shortText(jaeger)}: expected an http or https URL`);
  if (!isPattern(job)) problems.push(`--job: found ${shortText(job)}: expected a regular expression without quotes`);
  if (problems.length > 0) return { ok: false, problems };
  const links = { runbooks: withoutSlash(runbooks), jaeger: withoutSlash(jaeger) };
  return { ok: true, options: { thresholds, links, job } };
}

type Threshold = { name: ParameterName; value: number; problem?: undefined };
type NoThreshold = { name?: undefined; value?: undefined; problem: string };

function parseThreshold(text: string): Threshold | NoThreshold {
  const [name = '', number = ''] = text.split('=', 2);
  if (!isParameter(name)) {
    const near = nearName(name, parameterNames);
    return {
      problem: `there is no threshold ${shortText(name)}${near === undefined ? '' : `; did you mean ${near}?`}; docs/alerts.md has them all`,
    };
  }
  const { unit } = parameters[name];
  const value = Number(number);
  const most = unit === 'share' ? 1 : Number.MAX_SAFE_INTEGER;
  if (number.trim() === '' || !(value > 0 && value <= most))
    return { problem: `expected a number over 0${unit === 'share' ? ', at most 1' : ''} (${unit})` };
  return { name, value };
}

function isParameter(name: string): name is ParameterName {
  return (parameterNames as string[]).includes(name);
}

function isWebAddress(text: string): boolean {
  return URL.canParse(text) && ['http:', 'https:'].includes(new URL(text).protocol);
}

/** It becomes a text in double quotes. */
function isPattern(text: string): boolean {
  return /^[^"\\\n]+$/.test(text);
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '');
}
