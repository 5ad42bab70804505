import type { EnvoyProcess } from '../../src/lab/envoy-process.ts';

/** What is not the same on every Envoy that is supported. No test knows a version: it asks for the fact. */
export interface EnvoyFacts {
  /** Without the runtime flag a LOGICAL_DNS pool closes its connections after a flip. */
  logicalDnsDrains: boolean;
}

/** The facts of this very binary, by the version that it says of itself. */
export async function envoyFacts({ admin }: Pick<EnvoyProcess, 'admin'>): Promise<EnvoyFacts> {
  const { version } = await admin.json<{ version: string }>('/server_info');
  const [, number = ''] = version.split('/');
  const [major = 0, minor = 0] = number.split('.').map(Number);
  const isFrom = (wanted: number) => major > 1 || (major === 1 && minor >= wanted);
  return { logicalDnsDrains: isFrom(39) };
}
