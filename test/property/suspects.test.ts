import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Suspects } from '../../src/flow/suspects.ts';
import { connection } from '../support/connections.ts';
import { endpoint } from '../support/entries.ts';
import { listing, viewOfApp } from '../support/listing.ts';

const addresses = ['10.0.0.1', '10.0.0.2', '10.0.0.3'];
const step = fc.oneof(
  fc.record({ opens: fc.constantFrom(...addresses) }),
  fc.record({ closes: fc.nat({ max: 20 }) }),
  fc.record({ lists: fc.option(fc.subarray(addresses)) }),
);

describe('which connections may be pins', () => {
  it('are at any time those whose endpoint is not listed, whatever came, went and changed before', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const suspects = new Suspects();
        const open = new Map<number, string>();
        let listed: string[] | null = addresses;
        for (const [at, one] of steps.entries()) {
          if ('opens' in one) {
            open.set(at, one.opens);
            suspects.add(connection({ serial: at, peer: endpoint(`${one.opens}:80`) }));
          } else if ('closes' in one) {
            open.delete(one.closes);
            suspects.delete(connection({ serial: one.closes }));
          } else listed = one.lists;
          const view = viewOfApp(listed === null ? undefined : listing(...listed));
          const unlisted = [...open].filter(([, ip]) => listed?.includes(ip) !== true).map(([serial]) => serial);
          const found = suspects.find(view, () => false).map(({ serial: pinned }) => pinned);
          expect(found.toSorted((a, b) => a - b)).toEqual(unlisted);
        }
      }),
    );
  });
});
