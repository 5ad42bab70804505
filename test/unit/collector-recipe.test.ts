import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { pinSpanAttributes, spanAttributes } from '../../src/emit/attributes.ts';
import { keptReason, keptReasons } from '../../src/emit/spans/keep.ts';
import { outcomes, type Phase, pins } from '../../src/model/verdict.ts';
import { readDoc } from '../support/doc-tables.ts';

interface Policy {
  name: string;
  type: string;
  string_attribute?: { key: string; values: string[]; enabled_regex_matching?: boolean };
  boolean_attribute?: { key: string };
}

const text = readFileSync(new URL('../../monitoring/collector/config.yaml', import.meta.url), 'utf8');
const config = parse(text) as {
  processors: { tail_sampling: { policies: Policy[] } };
  connectors: { spanmetrics: { dimensions: { name: string }[] } };
};
const { policies } = config.processors.tail_sampling;
const strings = policies.flatMap(({ string_attribute: found }) => (found === undefined ? [] : [found]));
const valuesOf = (key: string) => strings.find((one) => one.key === key)?.values ?? [];

describe('the Collector recipe', () => {
  it('asks for attributes that spans have', () => {
    const known = [...Object.keys(spanAttributes), ...Object.keys(pinSpanAttributes)];
    const asked = [
      ...strings.map(({ key }) => key),
      ...policies.flatMap(({ boolean_attribute: found }) => (found === undefined ? [] : [found.key])),
      ...config.connectors.spanmetrics.dimensions.map(({ name }) => name),
    ];
    expect(asked.length).toBeGreaterThan(5);
    expect(asked.filter((key) => !known.includes(key))).toEqual([]);
  });

  it('keeps every kept reason, whatever it is called', () => {
    const [pattern = ''] = valuesOf('sidelight.kept_reason');
    expect(keptReasons.filter((reason) => !new RegExp(pattern).test(reason))).toEqual([]);
  });

  it('keeps of sampled traces the outcomes, phases and pins that Sidelight keeps of unsampled ones', () => {
    const facts = {
      outcome: 'ok',
      failedBeforeAbort: false,
      failedPhase: undefined,
      pin: undefined,
      pinExpected: false,
      durationMs: 1,
      slowMs: 1000,
    } as const;
    const kept = <T extends string>(
      values: readonly T[],
      of: (value: T) => Partial<Parameters<typeof keptReason>[0]>,
    ) => values.filter((value) => keptReason({ ...facts, ...of(value) }) !== undefined);
    expect(valuesOf('sidelight.outcome')).toEqual(kept(outcomes, (outcome) => ({ outcome })));
    expect(valuesOf('sidelight.pin')).toEqual(kept(pins, (pin) => ({ pin })));
    expect(valuesOf('sidelight.failed.phase')).toEqual(
      kept(['before_headers', 'in_body'] satisfies Phase[], (failedPhase) => ({ failedPhase })),
    );
    expect(policies.find(({ type }) => type === 'boolean_attribute')?.boolean_attribute?.key).toBe(
      'sidelight.failed_before_abort',
    );
  });

  it('has the variables that its page names, and no others', () => {
    const variables = new Set(Array.from(text.matchAll(/\$\{env:(\w+):-/g), ([, name]) => name));
    const line = readDoc('collector.md')
      .split('\n')
      .find((each) => each.startsWith('Addresses and the numbers'));
    const named = new Set(Array.from((line ?? '').matchAll(/`([A-Z_]+)`/g), ([, name]) => name));
    expect(named.size).toBeGreaterThan(0);
    expect(named).toEqual(variables);
  });
});
