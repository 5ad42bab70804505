import { describe, expect, it } from 'vitest';
import type { PinnedConnection } from '../../src/emit/metrics/gauges.ts';
import { metrics } from '../../src/emit/names.ts';
import { clearedPin, clusterView, pinLife, scraped, scrapeText, testEmit } from '../support/emit.ts';
import { reporter } from '../support/entries.ts';
import { judged, masked, pin } from '../support/judged.ts';
import { samplesOf, total } from '../support/prometheus-text.ts';

const now = 1_700_000_000_000;

function connection(overrides: Partial<PinnedConnection> = {}): PinnedConnection {
  return {
    reporter,
    cluster: 'app',
    endpoint: '127.0.0.11:8080',
    layer: 'http',
    pin: 'stale',
    ageMs: 5000,
    expected: false,
    ...overrides,
  };
}

describe('the scrape', () => {
  it('is the text format, with the replica in target_info and without # UNIT lines', () => {
    const emit = testEmit();
    emit.exchange(judged());
    const { contentType } = emit.scrape();
    const body = scrapeText(emit);
    expect(contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(body).not.toContain('# UNIT');
    const families = scraped(emit);
    expect(samplesOf(families, 'target_info')[0]?.labels).toMatchObject({
      service_name: 'sidelight',
      service_version: '0.1.0',
      service_instance_id: 'replica-1',
    });
  });

  it('escapes what labels may hold', () => {
    const emit = testEmit();
    emit.exchange(judged({ exchange: { cluster: 'a "b"\\c\nd', attempts: [] } }));
    expect(total(scraped(emit), 'sidelight_requests_total', { sidelight_cluster: 'a "b"\\c\nd' })).toBe(1);
  });

  it('shows pins while they live, the oldest by max, and nothing of them after', () => {
    let connections = [connection(), connection({ ageMs: 9000 }), connection({ layer: 'tcp', pin: 'draining' })];
    const emit = testEmit({ sources: { pins: () => connections } });
    const families = scraped(emit);
    const stale = { sidelight_pin: 'stale', sidelight_layer: 'http', sidelight_endpoint: '127.0.0.11:8080' };
    expect(total(families, 'sidelight_pins', stale)).toBe(2);
    expect(total(families, 'sidelight_pin_oldest_seconds', stale)).toBe(9);
    expect(total(families, 'sidelight_pins', { sidelight_pin: 'draining', sidelight_layer: 'tcp' })).toBe(1);
    connections = [];
    const after = scraped(emit);
    expect(after.has('sidelight_pins')).toBe(false);
    expect(after.has('sidelight_pin_oldest_seconds')).toBe(false);
  });

  it('says of a pin that the config expects it, and of what is listed nothing', () => {
    const connections = [
      connection({ expected: true }),
      connection({ expected: true, pin: 'current' }),
      connection({ cluster: 'other-app' }),
    ];
    const families = scraped(testEmit({ sources: { pins: () => connections } }));
    for (const name of ['sidelight_pins', 'sidelight_pin_oldest_seconds'])
      expect(
        samplesOf(families, name).map(({ labels }) => [
          labels['sidelight_cluster'],
          labels['sidelight_pin'],
          labels['sidelight_expected'],
        ]),
      ).toEqual([
        ['app', 'stale', 'true'],
        ['app', 'current', undefined],
        ['other-app', 'stale', undefined],
      ]);
  });

  it('tells what went over a cleared pin for five minutes more, to whoever collects, and then forgets it', () => {
    let connections = [connection()];
    let nowMs = now;
    const emit = testEmit({ now: () => nowMs, sources: { pins: () => connections } });
    const use = { reporter, cluster: 'app', endpoint: '127.0.0.11:8080' };
    const told = () => {
      const families = scraped(emit);
      return ['bytes', 'requests'].map((what) =>
        samplesOf(families, `sidelight_pin_${what}_total`).map(({ value }) => value),
      );
    };
    emit.pinUse({ ...use, requests: 1, bytes: 100 });
    expect(told()).toEqual([[100], [1]]);
    nowMs += 3_600_000;
    emit.pinUse({ ...use, requests: 2, bytes: 30 });
    connections = [connection({ pin: 'current', endpoint: '127.0.0.12:8080' })];
    for (const waitMs of [0, 1, 299_998, 1]) {
      nowMs += waitMs;
      expect(told()).toEqual([[130], [3]]);
    }
    expect(told()).toEqual([[], []]);
  });

  it('begins the five minutes anew when a pin comes back, and is not stopped by a clock that was set back', () => {
    let connections: PinnedConnection[] = [];
    let nowMs = now;
    const emit = testEmit({ now: () => nowMs, sources: { pins: () => connections } });
    const isTold = () => scraped(emit).has('sidelight_pin_bytes_total');
    const after = (waitMs: number) => {
      nowMs += waitMs;
      return isTold();
    };
    emit.pinUse({ reporter, cluster: 'app', endpoint: '127.0.0.11:8080', requests: 0, bytes: 9 });
    expect(after(0)).toBe(true);
    connections = [connection()];
    expect(after(299_000)).toBe(true);
    connections = [];
    expect([after(1000), after(299_000)]).toEqual([true, true]);
    expect([after(-7_200_000), after(1000)]).toEqual([true, false]);
  });

  it('has no requests of a TCP connection, because it has none', () => {
    const emit = testEmit();
    emit.pinUse({ reporter, cluster: 'app', endpoint: '127.0.0.11:9000', requests: 0, bytes: 9 });
    const families = scraped(emit);
    expect(total(families, 'sidelight_pin_bytes_total')).toBe(9);
    expect(families.has('sidelight_pin_requests_total')).toBe(false);
  });

  it('shows what discovery and coverage know now', () => {
    const views = [clusterView(), clusterView({ cluster: 'new', lastAnswerMs: undefined, listed: new Map() })];
    const emit = testEmit({
      now: () => now,
      sources: {
        discovery: () => ({
          clusters: () => views,
          cluster: () => undefined,
          proxy: () => undefined,
          proxies: () => [],
        }),
        coverage: () => [
          { profile: 'observe', reporters: 3, silent: 2, lastEntryMs: now - 250 },
          { profile: 'tag', reporters: 0, silent: 0, lastEntryMs: undefined },
        ],
        expected: () => 5,
        unused: () =>
          new Map([
            ['app', 1],
            ['busy', 0],
          ]),
        eventLoopLagMs: () => 12,
      },
    });
    const families = scraped(emit);
    expect(total(families, 'sidelight_endpoint_listed', { sidelight_cluster: 'app', sidelight_source: 'dns' })).toBe(1);
    expect(samplesOf(families, 'sidelight_discovery_age_seconds').map(({ value }) => value)).toEqual([1.5]);
    expect(
      total(families, 'sidelight_discovery_changes_total', { sidelight_change: 'added', sidelight_cluster: 'app' }),
    ).toBe(2);
    expect(total(families, 'sidelight_coverage_reporters', { sidelight_profile: 'observe' })).toBe(3);
    expect(samplesOf(families, 'sidelight_coverage_reporters', { sidelight_profile: 'tag' })[0]?.value).toBe(0);
    expect(total(families, 'sidelight_coverage_expected', {})).toBe(5);
    expect(
      samplesOf(families, 'sidelight_coverage_silent').map(({ labels, value }) => [labels['sidelight_profile'], value]),
    ).toEqual([
      ['observe', 2],
      ['tag', 0],
    ]);
    expect(samplesOf(families, 'sidelight_endpoint_unused').map(({ labels, value }) => [labels, value])).toEqual([
      [{ sidelight_cluster: 'app' }, 1],
      [{ sidelight_cluster: 'busy' }, 0],
    ]);
    expect(samplesOf(families, 'sidelight_coverage_last_entry_age_seconds').map(({ value }) => value)).toEqual([0.25]);
    expect(total(families, 'sidelight_self_event_loop_lag_seconds')).toBe(0.012);
  });

  it('survives a source that throws', () => {
    const emit = testEmit({
      sources: {
        pins: () => {
          throw new Error('no');
        },
        eventLoopLagMs: () => 1,
      },
    });
    emit.exchange(masked());
    const families = scraped(emit);
    expect(total(families, 'sidelight_requests_total', { sidelight_outcome: 'masked' })).toBe(1);
    expect(total(families, 'sidelight_self_event_loop_lag_seconds')).toBe(0.001);
  });

  it('has 3,000 clusters in full, with nothing of "other" in it', () => {
    const emit = testEmit();
    for (let i = 0; i < 3000; i += 1) emit.exchange(judged({ exchange: { cluster: `c${i}`, attempts: [] } }));
    const lines = scrapeText(emit).split('\n');
    const ok = lines.filter((line) => /^sidelight_requests_total\{.*sidelight_outcome="ok"\} 1$/.test(line));
    expect(new Set(ok).size).toBe(3000);
    expect(lines.filter((line) => line.includes('"other"'))).toEqual([]);
    expect(lines.filter((line) => /^sidelight_self_label_overflow_total.* [^0]/.test(line))).toEqual([]);
  });

  it('has no label and no family that the table of names does not have', () => {
    const emit = testEmit({
      sources: {
        pins: () => [connection({ expected: true })],
        unused: () => new Map([['app', 1]]),
        coverage: () => [{ profile: 'full', reporters: 1, silent: 1, lastEntryMs: now }],
        eventLoopLagMs: () => 1,
      },
      isPinExpected: () => true,
    });
    emit.exchange(masked());
    emit.exchange(judged({ verdict: { pin: pin({ pin: 'stale' }) } }));
    emit.pinEvent('opened', pinLife());
    emit.pinEvent('cleared', clearedPin());
    emit.pinUse({ reporter, cluster: 'app', endpoint: '127.0.0.11:8080', requests: 1, bytes: 9 });
    const body = scrapeText(emit);
    const families = scraped(emit);
    expect(body.match(/otel_/)).toBeNull();
    const labelsOf = new Map(
      Object.values(metrics).map(({ description, attributes }) => [
        description as string,
        attributes.map((name: string) => name.replaceAll('.', '_')),
      ]),
    );
    const stray = [...families.values()]
      .filter(({ name }) => name !== 'target_info')
      .flatMap(({ help, samples }) =>
        samples.flatMap(({ labels }) =>
          Object.keys(labels).filter((label) => label !== 'le' && labelsOf.get(help)?.includes(label) !== true),
        ),
      );
    expect(stray).toEqual([]);
  });
});
