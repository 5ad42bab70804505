import { expect, it } from 'vitest';
import { idleTimeoutOf } from '../../src/cli/serve/books.ts';
import { createClusterRules } from '../../src/config/cluster-rules.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import type { DiscoveryView, ProxyView } from '../../src/model/view.ts';
import { connection } from '../support/connections.ts';

const proxy: ProxyView = {
  nodeId: 'n',
  cluster: 'app',
  subject: 'http://127.0.0.1:15000',
  type: 'STRICT_DNS',
  envoyVersion: '1.40.0',
  hosts: new Map(),
  activeConnections: 1,
  openedMeanwhile: false,
  idleTimeoutMs: 10_000,
  closesOnHostSetChange: false,
  ignoresHealthOnRemoval: false,
  maxConnectionDurationMs: undefined,
  newDnsImplementation: undefined,
  lastAnswerMs: 0,
  staleAfterMs: 60_000,
  lastError: undefined,
};
const view: DiscoveryView = {
  cluster: () => undefined,
  clusters: () => [],
  proxy: () => proxy,
  proxies: () => [proxy],
};

it.each([
  ['http', 10_000],
  ['tcp', 3_600_000],
] as const)("a cluster's own idle timeout holds for HTTP, not for a TCP proxy: %s", (layer, timeoutMs) => {
  const checked = loadConfig(undefined, {});
  if (!checked.ok) throw new Error('the defaults are valid');
  const rules = createClusterRules(checked.config);
  expect(idleTimeoutOf(connection({ layer }), { rules, view })).toBe(timeoutMs);
});
