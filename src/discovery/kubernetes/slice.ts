import { z } from 'zod';
import { canonicalIp } from '../../lib/ip.ts';

/** An address in a slice. */
export interface SliceEndpoint {
  ip: string;
  /** Of the pod; `undefined`: the slice names none, as one that was written by hand. */
  uid: string | undefined;
  ready: boolean;
  terminating: boolean;
}

/** What is kept of an EndpointSlice. */
export interface Slice {
  name: string;
  service: string;
  endpoints: readonly SliceEndpoint[];
}

export const serviceLabel = 'kubernetes.io/service-name';

const condition = z.boolean().nullish();
const sliceObject = z.object({
  metadata: z.object({ name: z.string(), labels: z.record(z.string(), z.string()).nullish() }),
  addressType: z.string(),
  endpoints: z
    .array(
      z.object({
        addresses: z.array(z.string()),
        conditions: z.object({ ready: condition, terminating: condition }).nullish(),
        targetRef: z.object({ uid: z.string().nullish() }).nullish(),
      }),
    )
    .nullish(),
});

/**
 * What an EndpointSlice says; `undefined`: it belongs to no Service. A host name is no address that a connection could be
 * compared with, so a slice of type FQDN has no endpoints here. Throws when it is no EndpointSlice.
 */
export function readSlice(value: unknown): Slice | undefined {
  const { metadata, addressType, endpoints } = sliceObject.parse(value);
  const service = metadata.labels?.[serviceLabel];
  if (service === undefined) return undefined;
  const read = addressType === 'FQDN' ? [] : (endpoints ?? []).flatMap(readEndpoint);
  return { name: metadata.name, service, endpoints: read };
}

function readEndpoint({
  addresses,
  conditions,
  targetRef,
}: NonNullable<z.output<typeof sliceObject>['endpoints']>[number]): SliceEndpoint[] {
  // Consumers take the first address alone, says the API.
  const ip = canonicalIp(addresses[0] ?? '');
  if (ip === undefined) return [];
  const terminating = conditions?.terminating ?? false;
  // Unknown is to be taken for ready, says the API.
  return [{ ip, uid: targetRef?.uid ?? undefined, ready: conditions?.ready ?? true, terminating }];
}
