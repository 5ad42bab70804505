import fc from 'fast-check';
import { expect, it } from 'vitest';
import { examine } from '../../src/doctor/examine.ts';
import { factsOf } from '../../src/doctor/read/facts.ts';
import { readYaml } from '../../src/doctor/read/yaml.ts';
import { shippedConfig } from '../../src/lab/envoy-config.ts';

/* Whatever a proxy or a file says, there is an answer. */
const { listeners, clusters } = shippedConfig('full').static_resources;
const dump = {
  configs: [
    { '@type': 'a.BootstrapConfigDump', bootstrap: { node: { id: 'shop-1' } } },
    { '@type': 'a.ListenersConfigDump', static_listeners: listeners.map((listener) => ({ listener })) },
    { '@type': 'a.ClustersConfigDump', static_clusters: clusters.map((cluster) => ({ cluster })) },
  ],
};
const envoyFilter = {
  kind: 'EnvoyFilter',
  metadata: { name: 'a', namespace: 'b', annotations: {} },
  spec: {
    targetRefs: [{ kind: 'Gateway', name: 'waypoint' }],
    configPatches: [
      {
        applyTo: 'HTTP_FILTER',
        match: { context: 'SIDECAR_INBOUND', listener: { name: 'main_internal' } },
        patch: { operation: 'INSERT_BEFORE', value: { name: 'a', typed_config: { '@type': 'a.ExternalProcessor' } } },
      },
    ],
  },
};

/** The same value with something else in one place, which the numbers choose. */
function spoilt(value: unknown, path: readonly number[], with_: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined || typeof value !== 'object' || value === null) return with_;
  const keys = Object.keys(value);
  if (keys.length === 0) return with_;
  const chosen = keys[step % keys.length];
  const entries = Object.entries(value).map(([key, one]) => [key, key === chosen ? spoilt(one, rest, with_) : one]);
  return Array.isArray(value) ? entries.map(([, one]) => one) : Object.fromEntries(entries);
}

const steps = fc.array(fc.nat(40), { minLength: 1, maxLength: 14 });
const rest = { host: 'pay.example.com', chain: true, rootNamespace: 'istio-system', ignored: [] };

it('of a config dump with anything in any place', () => {
  fc.assert(
    fc.property(steps, fc.jsonValue(), (path, junk) => {
      const text = JSON.stringify(spoilt(dump, path, junk));
      const facts = factsOf('a', { 'config-dump': { text }, stats: { text: 'a: 0\n' } });
      const report = examine({ proxies: [facts, facts], files: [], ...rest });
      expect(report.isWhole).toBe(facts.config !== undefined);
    }),
  );
});

it('of answers of any kind', () => {
  fc.assert(
    fc.property(fc.json(), fc.string(), (json, text) => {
      const texts = {
        stats: { text },
        clusters: { text: json },
        runtime: { text: json },
        'server-info': { text: json },
      };
      const config = { 'config-dump': { text: JSON.stringify(dump) } };
      expect(examine({ proxies: [factsOf('a', { ...texts, ...config })], files: [], ...rest }).proxies).toHaveLength(1);
    }),
  );
});

it('of an EnvoyFilter with anything in any place, and of any text', () => {
  fc.assert(
    fc.property(steps, fc.jsonValue(), fc.string(), (path, junk, text) => {
      const files = [readYaml('a', { text: JSON.stringify(spoilt(envoyFilter, path, junk)) }), readYaml('b', { text })];
      expect(examine({ proxies: [], files, ...rest }).files).toHaveLength(2);
    }),
  );
});
