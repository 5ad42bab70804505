import { z } from 'zod';
import { parseHostPort } from '../lib/host-port.ts';
import { canonicalIp, ipWithPort } from '../lib/ip.ts';
import { type Checked, checkYaml } from '../lib/yaml-check.ts';

const endpoint = z.string().refine((text) => canonicalEndpoint(text) !== undefined, 'IP, IP:port or [IPv6]:port');
const schema = z.strictObject({ clusters: z.record(z.string(), z.array(endpoint)) });

const shape = 'a mapping of cluster names to lists of endpoints';

/** Parses `clusters: {NAME: [IP or IP:port, …]}` into the canonical endpoints per cluster. Never throws. */
export function parseEndpointsFile(text: string): Checked<ReadonlyMap<string, readonly string[]>> {
  const checked = checkYaml(text, schema, {
    expected: (path) =>
      ['a mapping with the key clusters', shape, 'a list of endpoints', 'IP, IP:port or [IPv6]:port'][path.length],
    knownKeys: () => ['clusters'],
  });
  if (!checked.ok) return checked;
  const clusters = Object.entries(checked.value.clusters).map(
    ([name, endpoints]) => [name, endpoints.map((given) => canonicalEndpoint(given) ?? given)] as const,
  );
  return { ok: true, value: new Map(clusters) };
}

function canonicalEndpoint(text: string): string | undefined {
  const bare = canonicalIp(text);
  if (bare !== undefined) return bare;
  const parts = parseHostPort(text);
  const ip = parts && canonicalIp(parts.host);
  return ip === undefined ? undefined : ipWithPort(ip, parts?.port ?? 0);
}
