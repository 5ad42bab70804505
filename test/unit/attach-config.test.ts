import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { attachToConfig } from '../../src/attach/plain/attach-to-config.ts';
import type { AttachPlan } from '../../src/attach/plan.ts';
import { render } from '../../src/attach/render.ts';
import { type Bootstrap, type Json, type ShippedConfig, shippedConfig } from '../../src/lab/envoy-config.ts';

const plain = readFileSync('test/fixtures/attach/plain.yaml', 'utf8');

function plan(profile: ShippedConfig, more: Partial<AttachPlan> = {}): AttachPlan {
  const place = { kind: 'address', host: '127.0.0.1', port: 50_051 } as const;
  return { profile, place, inject: false, samplePercent: undefined, messageTimeoutMs: 200, proxies: 1, ...more };
}

function attached(text: string, what: AttachPlan, listeners: string[] = []): string {
  const result = attachToConfig(text, what, listeners);
  if (!result.ok) throw new Error(result.problems.join('\n'));
  return render([result.document]);
}

function problems(text: string, listeners: string[] = []): string[] {
  const result = attachToConfig(text, plan('observe'), listeners);
  return result.ok ? [] : result.problems;
}

/** A shipped config without anything of Sidelight. */
function withoutSidelight(profile: ShippedConfig): string {
  const config = shippedConfig(profile);
  withoutOurs(config);
  return JSON.stringify(config);
}

/** Takes off what is ours, by its names, and the options of the logs. */
function withoutOurs({ static_resources: resources }: Bootstrap): void {
  resources.clusters = resources.clusters.filter(({ name }) => name !== 'sidelight');
  for (const { filter_chains: chains } of resources.listeners)
    for (const { typed_config: filter } of chains.flatMap(({ filters }) => filters)) {
      // The router first: with its log it would seem ours.
      for (const { typed_config: router } of filter.http_filters ?? []) {
        keepOthers(router, 'upstream_log');
        delete router.upstream_log_options;
      }
      keepOthers(filter, 'access_log', 'early_header_mutation_extensions', 'http_filters');
      delete filter.access_log_options;
    }
}

function keepOthers(config: Json, ...lists: string[]): void {
  for (const list of lists) {
    const others = ((config[list] ?? []) as Json[]).filter((item) => !JSON.stringify(item).includes('sidelight'));
    if (others.length === 0) delete config[list];
    else config[list] = others;
  }
}

it.each(['observe', 'full', 'tag'] as const)(
  'makes the shipped config of profile %s from one without Sidelight',
  (profile) => {
    expect(parse(attached(withoutSidelight(profile), plan(profile)))).toEqual(shippedConfig(profile));
  },
);

describe("the user's own lines", () => {
  it('stay as they are', () => {
    const config = parse(attached(plain, plan('full'))) as Bootstrap;
    const before = parse(plain) as Bootstrap;
    withoutOurs(config);
    withoutOurs(before);
    expect(config).toEqual(before);
  });

  it('keep their comments, in their order', () => {
    const comments = (text: string) => [...text.matchAll(/# (?<words>.*)/g)].map((match) => match.groups?.['words']);
    const kept = comments(attached(plain, plan('full'))).filter((comment) => comments(plain).includes(comment));
    expect(kept).toEqual(comments(plain));
  });

  it('win over ours where both set an option', () => {
    const config = parse(attached(plain, plan('observe'))) as ReturnType<typeof shippedConfig>;
    const tcp = config.static_resources.listeners[1]?.filter_chains[0]?.filters[0]?.typed_config;
    expect(tcp?.access_log_options).toEqual({
      access_log_flush_interval: '60s',
      flush_access_log_on_connected: true,
    });
  });

  it('keep their texts on one line', () => {
    const text = '"a body of more than forty characters,\\nin two lines"';
    expect(attached(plain.replace('stat_prefix: http', `stat_prefix: ${text}`), plan('observe'))).toContain(text);
  });

  it('may be JSON', () => {
    const json = JSON.stringify(parse(plain));
    expect(parse(attached(json, plan('full')))).toEqual(parse(attached(plain, plan('full'))));
  });
});

describe('a config with anchors and empty keys', () => {
  const shared = readFileSync('test/fixtures/attach/shared.yaml', 'utf8');
  const listenersOf = (text: string) => (parse(text, { maxAliasCount: -1 }) as Bootstrap).static_resources.listeners;
  const configs = (text: string) =>
    listenersOf(text).map(({ filter_chains: chains }) => chains[0]?.filters[0]?.typed_config as Json);
  const names = (list: unknown) => (list as Json[] | undefined)?.map(({ name }) => name);

  it('has ours right before the router, also after filters that are aliases', () => {
    for (const { http_filters: filters } of configs(attached(shared, plan('full'))).slice(0, 2))
      expect(names(filters)).toEqual([
        'mine',
        'envoy.filters.http.header_mutation.sidelight_remove',
        'envoy.filters.http.ext_proc.sidelight',
        'envoy.filters.http.header_mutation.sidelight_add',
        'envoy.filters.http.router',
      ]);
  });

  it('logs once to each of ours, whatever shares the list of logs', () => {
    const text = attached(shared, plan('observe'));
    expect(configs(text).map(({ access_log: logs }) => names(logs))).toEqual([
      ['stdout', 'envoy.access_loggers.http_grpc'],
      ['stdout', 'envoy.access_loggers.http_grpc'],
      ['stdout', 'envoy.access_loggers.tcp_grpc'],
      ['envoy.access_loggers.tcp_grpc'],
    ]);
    expect(parse(text)).toMatchObject({ admin: { access_log: [{ name: 'stdout' }] } });
    expect(names((parse(text) as { admin: Json }).admin['access_log'])).toEqual(['stdout']);
  });

  it('keeps ours off the listeners that are not named', () => {
    const logs = configs(attached(shared, plan('observe'), ['one'])).map(({ access_log: list }) => names(list));
    expect(logs).toEqual([['stdout', 'envoy.access_loggers.http_grpc'], ['stdout'], ['stdout'], undefined]);
  });

  it('keeps whole numbers of 64 bits', () => {
    expect(attached(shared, plan('observe'))).toContain('18446744073709551615');
  });

  it('has the layer of the kill switch where the key for it is empty', () => {
    const text = attached(`${shared}layered_runtime:\n`, plan('observe', { samplePercent: 100 }));
    expect(parse(text)).toMatchObject({ layered_runtime: { layers: [{ name: 'admin' }] } });
  });
});

it('attaches to the named listeners alone', () => {
  const text = attached(plain, plan('observe'), ['tcp']);
  expect(text).not.toContain('early_header_mutation');
  expect(text).toContain('TcpGrpcAccessLogConfig');
  // The first log of the file holds the block that the others name, whichever it is.
  expect(parse(text)).toBeDefined();
});

it('lets the runtime be changed where nothing of the config does', () => {
  const layered = `${plain}layered_runtime:\n  layers:\n    - { name: mine, static_layer: {} }\n`;
  const layers = (text: string) => (parse(text) as { layered_runtime?: unknown }).layered_runtime;
  expect(layers(attached(layered, plan('observe', { samplePercent: 100 })))).toEqual({
    layers: [
      { name: 'mine', static_layer: {} },
      { name: 'admin', admin_layer: {} },
    ],
  });
  expect(layers(attached(layered, plan('observe')))).toEqual({ layers: [{ name: 'mine', static_layer: {} }] });
  expect(layers(attached(plain, plan('observe', { samplePercent: 100 })))).toEqual({
    layers: [{ name: 'admin', admin_layer: {} }],
  });
  expect(layers(attached(plain, plan('observe')))).toBeUndefined();
});

it('says that the runtime cannot be changed where there is no admin interface', () => {
  const remarkOf = (text: string) => /# (Lets .*)/.exec(attached(text, plan('observe', { samplePercent: 100 })))?.[1];
  expect(remarkOf(plain.replace(/^admin:.*(\n .*)*/m, ''))).toBe(
    'Lets `runtime_modify` be heard, once there is an `admin` interface: this config has none.',
  );
  expect(remarkOf(plain)).toBe('Lets `runtime_modify` be heard.');
});

describe('a config that cannot be attached to', () => {
  it('is not told at length: a file that is no YAML at all', () => {
    expect(problems('a: [\n'.repeat(100))).toHaveLength(5);
  });

  it.each<[string, string, string[], string]>([
    ['no YAML', 'a: [', [], 'line 1: YAML: '],
    ['attached already', attached(plain, plan('tag')), [], 'Sidelight is attached to this config already'],
    [
      'another cluster of that name',
      plain.replace('- name: app\n      type', '- name: sidelight\n      type'),
      [],
      'a cluster named sidelight is there',
    ],
    ['no listeners', 'static_resources: {}', [], 'static_resources.listeners: expected an HTTP connection manager'],
    ['nothing at all', '', [], 'static_resources.listeners: expected an HTTP connection manager'],
    ['a list', '- 1', [], 'static_resources.listeners: expected an HTTP connection manager'],
    ['no such listener', plain, ['https'], '--listener https: expected one of http, tcp'],
    [
      'no router',
      plain.replace('http.router.v3.Router', 'http.cors.v3.Cors'),
      [],
      'listener http: an HTTP connection manager without a router',
    ],
    [
      'no router, no name',
      plain.replace('http.router.v3.Router', 'http.cors.v3.Cors').replace('- name: http #', '- #'),
      [],
      'listener 0, which has no name: an HTTP connection manager without a router',
    ],
    [
      'the other spelling of fields',
      plain.replace('http_filters:', 'httpFilters:'),
      [],
      'line 25: found httpFilters: expected http_filters',
    ],
  ])('is told: %s', (_, text, listeners, expected) => {
    expect(problems(text, listeners)).toEqual([expect.stringContaining(expected)]);
  });
});
