import { randomInt } from 'node:crypto';
import { isFreeOnAll } from '../../../src/lab/free-port.ts';

/** Ports that Istio fixes; where no port can be chosen, an address is. */
export const istioPorts = { service: 8080, endpoint: 18_080, hbone: 15_008, control: 15_010, secrets: 50_061 } as const;

/** The first three numbers of a loopback network (`127.37.201`) on which every one of Istio's ports is free. */
export async function freeNet(): Promise<string> {
  for (;;) {
    const prefix = `127.${randomInt(1, 255)}.${randomInt(1, 255)}`;
    const free = await Promise.all(Object.values(istioPorts).map((port) => isFreeOnAll([`${prefix}.1`], port)));
    if (free.every(Boolean)) return prefix;
  }
}
