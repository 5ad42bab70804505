import { expect, it } from 'vitest';
import { internalHeaders, shippedAttributes, shippedTags, shippedVersion } from '../../src/doctor/shipped.ts';
import { type Json, type ShippedConfig, shippedConfig } from '../../src/lab/envoy-config.ts';

/* What an attached config is compared with is what is shipped. */
const hcm = (name: ShippedConfig) => {
  const found = shippedConfig(name).static_resources.listeners[0]?.filter_chains[0]?.filters[0]?.typed_config;
  if (found === undefined) throw new Error(`no listener in ${name}`);
  return found;
};

it.each(['full', 'observe'] as const)('version and tags of %s', (name) => {
  const common = hcm(name).access_log?.[0]?.typed_config.common_config;
  expect(common?.['log_name']).toBe(`sidelight.${name}.${shippedVersion}`);
  const tags = ((common?.['custom_tags'] ?? []) as { tag: string }[]).map(({ tag }) => tag);
  expect(tags).toEqual(['key', ...shippedTags]);
});

it.each(['full', 'tag'] as const)('attributes and internal headers of %s', (name) => {
  const extProc = hcm(name).http_filters?.find((filter) => filter.name.includes('ext_proc'))?.typed_config as Json;
  expect(extProc['response_attributes']).toEqual(expect.arrayContaining([...shippedAttributes]));
  const { patterns } = (extProc['forward_rules'] as { allowed_headers: { patterns: { exact: string }[] } })
    .allowed_headers;
  expect(patterns.map(({ exact }) => exact)).toEqual(expect.arrayContaining([...internalHeaders]));
});
