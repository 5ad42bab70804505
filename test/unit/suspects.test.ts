import { describe, expect, it } from 'vitest';
import { Suspects } from '../../src/flow/suspects.ts';
import type { UpstreamConnection } from '../../src/model/upstream-connection.ts';
import type { DiscoveryView } from '../../src/model/view.ts';
import { connection } from '../support/connections.ts';
import { endpoint } from '../support/entries.ts';
import { listing, viewOfApp } from '../support/listing.ts';

const nothing: DiscoveryView = viewOfApp(undefined);

function setUp(...connections: UpstreamConnection[]) {
  const suspects = new Suspects();
  for (const one of connections) suspects.add(one);
  const found = (view: DiscoveryView, also: (one: UpstreamConnection) => boolean = () => false) =>
    suspects.find(view, also);
  return { suspects, found };
}

describe('which connections may be pins', () => {
  const kept = connection({ serial: 1, peer: endpoint('10.0.0.1:80') });
  const leaving = connection({ serial: 2, peer: endpoint('10.0.0.2:80') });
  const both = viewOfApp(listing('10.0.0.1', '10.0.0.2'));
  const one = viewOfApp(listing('10.0.0.1'));

  it('are those whose endpoint leaves, from then on until it is back', () => {
    const { found } = setUp(kept, leaving);
    expect(found(both)).toEqual([]);
    expect(found(one)).toEqual([leaving]);
    expect(found(one)).toEqual([leaving]);
    expect(found(both)).toEqual([]);
    expect(found(one)).toEqual([leaving]);
  });

  it('are also those of an address that passed to another pod, though it is listed without a break', () => {
    const { found } = setUp(kept, leaving);
    expect(found(both)).toEqual([]);
    const owner = { leftAtMs: 1, graceFromMs: 1, nextFromMs: 1, nextByMs: 1 };
    const passedOn = viewOfApp(listing('10.0.0.1', '10.0.0.2'), new Map([['10.0.0.2', [owner]]]));
    expect(found(passedOn)).toEqual([leaving]);
    expect(found(passedOn)).toEqual([leaving]);
  });

  it('are also those that are new, though their list stays the same', () => {
    const { suspects, found } = setUp(kept);
    expect(found(one)).toEqual([]);
    suspects.add(leaving);
    expect(found(one)).toEqual([leaving]);
  });

  it('are all of a cluster that no source covers, and after that those that its new list has not', () => {
    const { found } = setUp(kept, leaving);
    expect(found(both)).toEqual([]);
    expect(found(nothing)).toEqual([kept, leaving]);
    expect(found(one)).toEqual([leaving]);
  });

  it('are listed with or without a port', () => {
    const { found } = setUp(kept, leaving);
    expect(found(viewOfApp(listing('10.0.0.1:80', '10.0.0.2:81')))).toEqual([leaving]);
  });

  it('are those that are asked for, as long as they are, after they are listed again', () => {
    const { found } = setUp(kept, leaving);
    expect(found(one)).toEqual([leaving]);
    expect(found(both, ({ serial }) => serial === leaving.serial)).toEqual([leaving]);
    expect(found(both)).toEqual([]);
    expect(found(both, () => true)).toEqual([]);
  });

  it('are given as of their latest entry, and no more when they are over', () => {
    const { suspects, found } = setUp(leaving);
    const later = { ...leaving, requests: 7 };
    expect(suspects.update(later)).toBe(true);
    expect(found(one)).toEqual([later]);
    suspects.delete(later);
    expect(suspects.update(later)).toBe(false);
    expect(found(one)).toEqual([]);
  });
});
