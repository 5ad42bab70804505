/** Who closed a connection, where Envoy says it: the client, the endpoint (or the network before it), or Envoy itself. */
export const closers = ['client', 'server', 'envoy'] as const;
export type ClosedBy = (typeof closers)[number];
