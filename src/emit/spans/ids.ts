import { type IdGenerator, RandomIdGenerator } from '@opentelemetry/sdk-trace';

/** The ids that the next span takes. `undefined`: a random one. */
export interface Chosen {
  traceId: string | undefined;
  spanId: string | undefined;
}

/**
 * Lets the next span have ids that are already known elsewhere. `startSpan` asks synchronously, once for a span id, and
 * for a trace id only without a valid parent; so choose just before it.
 */
export class ChosenIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #next: Chosen = { traceId: undefined, spanId: undefined };

  choose(next: Chosen): void {
    this.#next = next;
  }

  generateSpanId(): string {
    const id = this.#next.spanId ?? this.#random.generateSpanId();
    this.#next = { ...this.#next, spanId: undefined };
    return id;
  }

  generateTraceId(): string {
    const id = this.#next.traceId ?? this.#random.generateTraceId();
    this.#next = { ...this.#next, traceId: undefined };
    return id;
  }

  randomTraceId(): string {
    return this.#random.generateTraceId();
  }
}
