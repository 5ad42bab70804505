/** One sample of a scrape. */
export interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

export interface Family {
  name: string;
  type: string;
  help: string;
  samples: Sample[];
}

const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/y;

/**
 * Parses the text format 0.0.4, and throws on anything that a strict reader would not take: a sample without its
 * family, a family in two places, a series twice, a histogram whose buckets do not add up.
 */
export function parsePrometheusText(text: string): Map<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the text does not end with a line feed');
  const families = new Map<string, Family>();
  const seen = new Set<string>();
  let family: Family | undefined;
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const help = /^# HELP (?<name>\S+) (?<text>.*)$/.exec(line)?.groups;
    const type = /^# TYPE (?<name>\S+) (?<type>counter|gauge|histogram)$/.exec(line)?.groups;
    if (help?.['name'] !== undefined) {
      if (families.has(help['name'])) throw new Error(`twice: ${line}`);
      family = { name: help['name'], type: '', help: help['text'] ?? '', samples: [] };
      families.set(family.name, family);
    } else if (type !== undefined) {
      if (family === undefined || family.name !== type['name'] || family.type !== '') throw new Error(`stray: ${line}`);
      family.type = type['type'] ?? '';
    } else {
      const sample = parseSample(line);
      if (family === undefined || !belongs(sample.name, family)) throw new Error(`not of its family: ${line}`);
      const id = line.slice(0, line.lastIndexOf(' '));
      if (seen.has(id)) throw new Error(`twice: ${line}`);
      seen.add(id);
      family.samples.push(sample);
    }
  }
  for (const each of families.values()) if (each.type === 'histogram') checkHistogram(each);
  return families;
}

/** The sum of the samples with this name whose labels have all these values. */
export function total(families: Map<string, Family>, name: string, labels: Record<string, string> = {}): number {
  return samplesOf(families, name, labels).reduce((sum, { value }) => sum + value, 0);
}

export function samplesOf(
  families: Map<string, Family>,
  name: string,
  labels: Record<string, string> = {},
): readonly Sample[] {
  return [...families.values()]
    .flatMap(({ samples }) => samples)
    .filter((sample) => sample.name === name)
    .filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value));
}

function belongs(name: string, { name: family, type }: Family): boolean {
  return type === 'histogram'
    ? [`${family}_bucket`, `${family}_sum`, `${family}_count`].includes(name)
    : name === family;
}

function parseSample(line: string): Sample {
  const parts = /^(?<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?<labels>.*)\})? (?<value>\S+)$/.exec(line)?.groups;
  if (parts?.['name'] === undefined) throw new Error(`not a sample: ${line}`);
  const labels: Record<string, string> = {};
  const text = parts['labels'] ?? '';
  label.lastIndex = 0;
  while (label.lastIndex < text.length) {
    const found = label.exec(text);
    const [, name = '', value = ''] = found ?? [];
    if (found === null) throw new Error(`not labels: ${line}`);
    if (name in labels) throw new Error(`label twice: ${line}`);
    labels[name] = unescape(value);
  }
  return { name: parts['name'], labels, value: number(parts['value'] ?? '') };
}

function unescape(value: string): string {
  return !value.includes('\\')
    ? value
    : value.replaceAll(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character));
}

function number(text: string): number {
  if (text === '+Inf') return Infinity;
  const value = Number(text);
  if (Number.isNaN(value)) throw new Error(`not a number: ${text}`);
  return value;
}

function checkHistogram({ name, samples }: Family): void {
  const counts = new Map<string, { last: number; bound: number; count: number | undefined }>();
  for (const { name: sampleName, labels, value } of samples) {
    const { le, ...rest } = labels;
    const key = JSON.stringify(rest);
    const known = counts.get(key) ?? { last: 0, bound: -Infinity, count: undefined };
    counts.set(key, known);
    if (sampleName === `${name}_count`) known.count = value;
    if (sampleName !== `${name}_bucket`) continue;
    const bound = number(le ?? '');
    if (value < known.last || bound <= known.bound) throw new Error(`buckets of ${name} out of order`);
    Object.assign(known, { last: value, bound });
  }
  for (const { last, bound, count } of counts.values())
    if (bound !== Infinity || count !== last) throw new Error(`buckets of ${name} do not add up`);
}
