import type { SeriesKind } from './series-kind.ts';

/** Where a kind's numbers are among those of a scope. */
export interface Place {
  kind: SeriesKind;
  /** Which of the layout's kinds it is, from 0 on. */
  index: number;
  /** Where its first number is. */
  at: number;
}

/**
 * Where the scopes of one sort keep the numbers of each kind: all alike, so that none has to search. A kind gets its
 * place when it is first used, so that the usual ones are in front, and a scope is as long as the rarest that it has.
 */
export class Layout {
  readonly places: Place[] = [];
  readonly #byKind: (Place | undefined)[] = [];
  #length = 0;

  placeOf(kind: SeriesKind): Place {
    return this.#byKind[kind.id] ?? this.#add(kind);
  }

  #add(kind: SeriesKind): Place {
    const place = { kind, index: this.places.length, at: this.#length };
    this.places.push(place);
    this.#byKind[kind.id] = place;
    this.#length += lengthOf(kind);
    return place;
  }
}

/** A counter's value; a histogram's sum, one count per bucket, and one for what is over the last bound. */
export function lengthOf({ metric: { kind, buckets = [] } }: SeriesKind): number {
  return kind === 'histogram' ? buckets.length + 2 : 1;
}
