import { type Family, type Sample, samplesOf } from './prometheus-text.ts';

/**
 * Evaluates what docs/reference/metrics.md computes: two sums of rates over selectors, divided. Each series is taken to
 * have started at 0, so that a rate is the value over one and the same time, which the division takes out again.
 */
export function evaluateRatio(query: string, families: Map<string, Family>): number {
  const [above, below, ...rest] = query.split('/').map((part) => part.trim());
  if (above === undefined || below === undefined || rest.length > 0) throw new Error(`not a ratio: ${query}`);
  return sumOfRates(above, families) / sumOfRates(below, families);
}

function sumOfRates(expression: string, families: Map<string, Family>): number {
  const parts = /^sum by \(sidelight_cluster\) \(rate\((?<name>\w+)\{(?<matchers>.*)\}\[5m\]\)\)$/.exec(
    expression,
  )?.groups;
  if (parts?.['name'] === undefined) throw new Error(`not a sum of rates: ${expression}`);
  const matchers = [...(parts['matchers'] ?? '').matchAll(/(?<label>\w+)(?<sign>=~|!~|!=|=)"(?<text>[^"]*)"/g)];
  if (matchers.map(([text]) => text).join(',') !== parts['matchers']) throw new Error(`not understood: ${expression}`);
  return samplesOf(families, parts['name'])
    .filter((sample) => matchers.every(({ groups }) => matches(sample, groups ?? {})))
    .reduce((sum, { value }) => sum + value, 0);
}

/** A label that is not there is the empty text. */
function matches({ labels }: Sample, { label = '', sign, text = '' }: Record<string, string>): boolean {
  const value = labels[label] ?? '';
  const fits = sign?.includes('~') === true ? new RegExp(`^(?:${text})$`).test(value) : value === text;
  return sign?.startsWith('!') === true ? !fits : fits;
}
