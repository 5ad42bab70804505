import { parsePrometheusText, samplesOf } from './prometheus-text.ts';
import type { TestSidelight } from './sidelight.ts';
import { until } from './until.ts';

interface Counts {
  /** Requests by outcome (of `local` with its result); those of 0 left out. */
  outcomes: Record<string, number>;
  /** Attempts by endpoint and cause, or, without one, result. */
  attempts: Record<string, number>;
  /** The sum of any metric of the same place, labels without `sidelight_`. */
  metric: (name: string, labels?: Record<string, string>) => Promise<number>;
}

/** What `/metrics` says of one place (such as `{cluster}`), once it has so many requests. */
export async function counts(
  sidelight: Pick<TestSidelight, 'get' | 'metric'>,
  place: Record<string, string>,
  requests: number,
): Promise<Counts> {
  const metric: Counts['metric'] = (name, labels = {}) => sidelight.metric(name, { ...place, ...labels });
  await until(`${requests} requests`, async () => (await metric('sidelight_requests_total')) >= requests);
  const families = parsePrometheusText(await sidelight.get('/metrics'));
  const own = Object.fromEntries(Object.entries(place).map(([label, value]) => [`sidelight_${label}`, value]));
  const add = (name: string, nameOf: (labels: Readonly<Record<string, string>>) => string) => {
    const sums: Record<string, number> = {};
    for (const { labels, value } of samplesOf(families, name, own)) {
      if (value !== 0) sums[nameOf(labels)] = (sums[nameOf(labels)] ?? 0) + value;
    }
    return sums;
  };
  return {
    outcomes: add('sidelight_requests_total', (labels) =>
      [labels['sidelight_outcome'], labels['sidelight_local_result']].filter(Boolean).join(' '),
    ),
    attempts: add(
      'sidelight_attempts_total',
      (labels) => `${labels['sidelight_endpoint']} ${labels['sidelight_cause'] ?? labels['sidelight_result']}`,
    ),
    metric,
  };
}
