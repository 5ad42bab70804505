import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { attribute } from '../../src/emit/attributes.ts';
import { metrics } from '../../src/emit/names.ts';
import { prometheusName } from '../../src/emit/prometheus-name.ts';
import { alertGroups, buildRules } from '../../src/monitoring/build.ts';
import { parameterNames, parameters } from '../../src/monitoring/parameters.ts';
import { recordingGroups } from '../../src/monitoring/recording.ts';
import { readDoc, tableOf } from '../support/doc-tables.ts';
import { alertCases } from '../support/prometheus-cases.ts';

const page = readDoc('alerts.md');
const rules = buildRules();
const alerts = Object.values(alertGroups).flat();
const recordings = recordingGroups.flatMap((group) => group.rules);
const written = rules.alerts.flatMap((group) => group.rules);
const expressions = [...rules.recording, ...rules.alerts].flatMap((group) => group.rules).map(({ expr }) => expr);

/** Histograms are asked for by their buckets. */
const metricNames = Object.values(metrics).map((metric) => prometheusName(metric));
const labelNames = Object.values(attribute).map((name) => name.replaceAll('.', '_'));
const known = new Set([...metricNames, ...metricNames.map((name) => `${name}_bucket`), ...labelNames]);
const recordNames = new Set<string>(recordings.map(({ record }) => record));

/** What is named in a text that is neither exported nor recorded. */
function unknownNames(text: string): string[] {
  const exported = (text.match(/\bsidelight_\w+/g) ?? []).filter((name) => !known.has(name));
  const recorded = (text.match(/\bsidelight:[\w:]+/g) ?? []).filter((name) => !recordNames.has(name));
  return [...exported, ...recorded];
}

/** Whether the innermost sum around a metric drops the kind. */
function isSummedOverKinds(expr: string, name: string): boolean {
  return [...expr.matchAll(new RegExp(`\\b${name}\\b`, 'g'))].some(({ index }) => {
    const around = [...expr.slice(0, index).matchAll(/\b(?:sum|max|min)(?: by \((?<by>[^)]*)\))? ?\(/g)].at(-1);
    return around !== undefined && !(around.groups?.['by'] ?? '').includes('sidelight_reporter_kind');
  });
}

describe('the names in the rules', () => {
  it('are exported or recorded', () => {
    expect(expressions.flatMap(unknownNames)).toEqual([]);
    expect(unknownNames('sum by (sidelight_clutser) (sidelight:masked:ratio7m)')).toEqual([
      'sidelight_clutser',
      'sidelight:masked:ratio7m',
    ]);
  });

  it('of metrics are all there, but for those that the page lists with a reason', () => {
    const used = metricNames.filter((name) => expressions.some((expr) => new RegExp(`\\b${name}\\b`).test(expr)));
    const listed = tableOf(page, ['metric', 'why not']).map(([name = '']) => name.replaceAll('`', ''));
    expect([...used, ...listed].toSorted()).toEqual(metricNames.toSorted());
  });

  it('of traffic keep the kind of the reporter: a call that three proxies see is never added up', () => {
    const ofTraffic = Object.values(metrics)
      .filter(({ attributes }) => (attributes as readonly string[]).includes(attribute.reporterKind))
      .map((metric) => prometheusName(metric));
    const overKinds = expressions.filter((expr) => ofTraffic.some((name) => isSummedOverKinds(expr, name)));
    // Here both sides count what each proxy saw.
    const exempt = overKinds.filter((expr) => expr.includes(prometheusName(metrics.selfIncomplete)));
    expect(overKinds).toEqual(exempt);
    expect(exempt).toHaveLength(1);
  });
});

describe('docs/alerts.md', () => {
  it('has every alert with severity, meaning, thresholds and how long it must hold', () => {
    const rows = alerts.map(({ name, severity, meaning, parameters: named }) => [
      `[${name}](runbooks/${name}.md)`,
      severity,
      meaning,
      named.map((one) => `\`${one}\``).join(' ') || '–',
      written.find(({ alert }) => alert === name)?.for,
    ]);
    expect(tableOf(page, ['alert', 'severity', 'meaning', 'thresholds', 'for'])).toEqual(rows);
  });

  it('has every threshold with its default and its reason', () => {
    const rows = parameterNames.map((name) => {
      const { value, unit, meaning, reason } = parameters[name];
      return [`\`${name}\``, String(value), unit, meaning, reason];
    });
    expect(tableOf(page, ['threshold', 'default', 'unit', 'what it bounds', 'why'])).toEqual(rows);
  });

  it('has everything that is recorded', () => {
    const rows = recordings.map(({ record, meaning }) => [`\`${record}\``, meaning]);
    expect(tableOf(page, ['recorded', 'what it says'])).toEqual(rows);
  });
});

describe('every alert', () => {
  it('has a runbook, and no runbook is without an alert', () => {
    const files = readdirSync(new URL('../../docs/runbooks/', import.meta.url));
    expect(files.toSorted()).toEqual(alerts.map(({ name }) => `${name}.md`).toSorted());
  });

  it('has cases in which it fires and in which it does not', () => {
    const fired = alertCases.map(({ alert }) => alert);
    const quiet = alertCases.filter((one) => (one.quiet ?? []).length > 0).map(({ alert }) => alert);
    expect(alerts.map(({ name }) => name).filter((name) => !fired.includes(name) || !quiet.includes(name))).toEqual([]);
  });

  it('is moved by each threshold that the page gives it', () => {
    const moved = (name: string) =>
      new Set(
        parameterNames.filter((parameter) => {
          const other = buildRules({ thresholds: { [parameter]: 0.123 } }).alerts.flatMap((group) => group.rules);
          const [before, after] = [written, other].map((all) => all.find(({ alert }) => alert === name));
          return before?.expr !== after?.expr || before?.for !== after?.for;
        }),
      );
    for (const { name, parameters: named } of alerts) expect([name, moved(name)]).toEqual([name, new Set(named)]);
  });
});

describe.each(alerts.map(({ name }) => name))('docs/runbooks/%s.md', (name) => {
  const book = readDoc(`runbooks/${name}.md`);

  it('says what it means, how to confirm it, what to change and when to silence it', () => {
    expect(book.match(/^#.*/gm)).toEqual([
      `# ${name}`,
      '## What it means',
      '## How to confirm',
      '## What to change',
      '## When to silence',
    ]);
  });

  it('names only what is there: metrics, labels, recorded series, thresholds, paths of the API', () => {
    expect(unknownNames(book)).toEqual([]);
    const api = readDoc('reference/api.md');
    for (const [, path = ''] of book.matchAll(/127\.0\.0\.1:9464(\/[\w/]*)/g)) expect(api).toContain(`\`${path}\``);
  });
});
