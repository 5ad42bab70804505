const firstWaitMs = 500;
const longestWaitMs = 10_000;
/** The server speaks every second; longer than this it is gone, though the connection may not know. */
const silentMs = 5000;

/**
 * Listens to the parts that are shown, and comes back by itself when the connection is lost, each time a little later.
 * While nobody looks at this page it does not listen: a browser has few connections for all of its pages.
 */
export class Stream {
  #onPart;
  #onState;
  #parts = [];
  /** @type {EventSource | undefined} */
  #source = undefined;
  #timer = 0;
  #waitMs = firstWaitMs;

  /** `onPart(name, value)`: a part came. `onState(state, retryAtMs)`: `live`, `waiting` (until then), `paused`. */
  constructor(onPart, onState) {
    this.#onPart = onPart;
    this.#onState = onState;
    document.addEventListener('visibilitychange', () => this.#open());
  }

  /** Listens to these from now on. */
  listen(parts) {
    if (String(parts) === String(this.#parts)) return;
    this.#parts = parts;
    this.#open();
  }

  #open() {
    this.#close();
    if (document.hidden) {
      this.#onState('paused');
      return;
    }
    const source = new EventSource(`api/v1/events?parts=${this.#parts.join(',')}`);
    this.#source = source;
    for (const name of ['tick', ...this.#parts])
      source.addEventListener(name, (event) => this.#heard(name, JSON.parse(event.data)));
    source.addEventListener('error', () => this.#lost());
    this.#watch();
  }

  #heard(name, value) {
    this.#waitMs = firstWaitMs;
    this.#watch();
    this.#onPart(name, value);
    this.#onState('live');
  }

  #watch() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#lost(), silentMs);
  }

  #lost() {
    this.#close();
    const waitMs = this.#waitMs * (0.75 + Math.random() / 2);
    this.#waitMs = Math.min(longestWaitMs, this.#waitMs * 2);
    this.#timer = setTimeout(() => this.#open(), waitMs);
    this.#onState('waiting', Date.now() + waitMs);
  }

  #close() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = undefined;
  }
}
