import type { Metric } from './names.ts';

/** UCUM units that Sidelight uses → Prometheus' words. An annotation (`{request}`) has none. */
const unitWords: Readonly<Record<string, string>> = { s: 'seconds', By: 'bytes' };

/**
 * The name that Prometheus 3 and the Collector give to an OTLP metric, so that a scrape and an OTLP path agree:
 * the unit as a suffix unless the name has that word, `_ratio` for a gauge of unit 1, `_total` for a counter.
 * Rules: prometheus/otlptranslator, `metric_namer.go`.
 */
export function prometheusName({ name, unit, kind }: Pick<Metric, 'name' | 'unit' | 'kind'>): string {
  const words = name.split(/[^a-zA-Z0-9]+/).filter((word) => word !== '');
  const unitWord = unitWords[unit];
  if (unitWord !== undefined && !words.includes(unitWord)) words.push(unitWord);
  if (kind === 'counter') return [...words.filter((word) => word !== 'total'), 'total'].join('_');
  if (kind === 'gauge' && unit === '1') return [...words.filter((word) => word !== 'ratio'), 'ratio'].join('_');
  return words.join('_');
}
