/** One sample of a scrape. */
export interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

const line = /^(?<name>[a-zA-Z_:][\w:]*)(?:\{(?<labels>.*)\})? (?<value>\S+)(?: \d+)?$/;
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** The samples of a Prometheus text answer; comments are left out. */
export function readSamples(text: string): Sample[] {
  return text.split('\n').flatMap((row) => {
    const groups = line.exec(row)?.groups;
    if (groups === undefined) return [];
    const { name = '', labels = '', value = '' } = groups;
    const pairs = Array.from(labels.matchAll(label), ([, key = '', raw = '']) => [key, raw] as const);
    return [{ name, labels: Object.fromEntries(pairs), value: Number(value) }];
  });
}

/** The sum of all samples of a name whose labels are as given. */
export function sumOf(samples: readonly Sample[], name: string, labels: Readonly<Record<string, string>>): number {
  return samples
    .filter(
      (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
    )
    .reduce((sum, sample) => sum + sample.value, 0);
}
