import { until } from './until.ts';

export interface ServerEvent {
  event: string;
  data: string;
}

/** Reads server-sent events as they come. */
export class EventReader {
  readonly events: ServerEvent[] = [];
  readonly ended: Promise<void>;
  readonly #abort: AbortController;

  private constructor(response: Response, abort: AbortController) {
    this.#abort = abort;
    this.ended = this.#read(response).catch(() => undefined);
  }

  /** Throws where the answer is no stream. */
  static async open(url: string): Promise<EventReader> {
    const abort = new AbortController();
    const response = await fetch(url, { signal: abort.signal });
    if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
    return new EventReader(response, abort);
  }

  /** The latest value of a part; `undefined`: none came yet. */
  latest(event: string): unknown {
    const found = this.events.findLast((one) => one.event === event);
    return found && (JSON.parse(found.data) as unknown);
  }

  /** Waits for an event, one that came already included. */
  until(holds: (event: ServerEvent) => boolean): Promise<void> {
    return until('an event', () => this.events.some(holds));
  }

  /** Waits for so many more ticks. */
  async ticks(count: number): Promise<void> {
    const ticks = () => this.events.filter(({ event }) => event === 'tick').length;
    const wanted = ticks() + count;
    await until(`${count} ticks`, () => ticks() >= wanted);
  }

  async close(): Promise<void> {
    this.#abort.abort();
    await this.ended;
  }

  async #read(response: Response): Promise<void> {
    let rest = '';
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = (rest + chunk).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const event = /^event: (.*)$/m.exec(block)?.[1];
        const data = /^data: (.*)$/m.exec(block)?.[1];
        if (event !== undefined && data !== undefined) this.events.push({ event, data });
      }
    }
  }
}
