import { metrics } from '../names.ts';
import type { Scope } from './series.ts';
import { seriesKind } from './series-kind.ts';

/** So long the last values of a cleared pin are told: a scrape and OTLP, each at its own pace, must both have had them. */
const toldForMs = 5 * 60_000;

const pinBytes = seriesKind(metrics.pinBytes);
const pinRequests = seriesKind(metrics.pinRequests);

/** Drops what was counted over the pins of an endpoint when nothing is connected there any more. */
export class ClearedUse {
  /** When a collection first saw no pin at a place that has such a count. */
  readonly #clearedMs = new WeakMap<Scope, number>();

  /** At the end of each collection. `pinned`: the places to which a pin is connected now. */
  drop(places: Iterable<Scope>, pinned: ReadonlySet<Scope>, nowMs: number): void {
    for (const place of places) {
      if (pinned.has(place)) {
        this.#clearedMs.delete(place);
        continue;
      }
      if (!place.has(pinBytes) && !place.has(pinRequests)) continue;
      const clearedMs = this.#clearedMs.get(place);
      if (clearedMs === undefined) this.#clearedMs.set(place, nowMs);
      // Either way: after our clock was set back nothing is told until it is where it was.
      else if (Math.abs(nowMs - clearedMs) >= toldForMs) this.#forget(place);
    }
  }

  #forget(place: Scope): void {
    place.drop(pinBytes);
    place.drop(pinRequests);
    this.#clearedMs.delete(place);
  }
}
