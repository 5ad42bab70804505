import type { ServerResponse } from 'node:http';
import { securityHeaders } from './answer.ts';

/** The parts of what a page shows. A viewer is sent those that it asks for. */
export const pageParts = ['coverage', 'clusters', 'pins', 'endpoints', 'exchanges'] as const;
export type PagePart = (typeof pageParts)[number];

export interface ViewersOptions {
  /** Each part as it is now, plain JSON. Asked only while somebody watches it, and once for all who do. */
  parts: Readonly<Record<PagePart, () => unknown>>;
  /** Viewers at once; further ones are refused. */
  max: number;
  /** Time between two looks, ms. */
  tickMs: number;
  /** Epoch ms. */
  now: () => number;
  /** A part could not be made. */
  onError: (error: unknown) => void;
}

/** A part as it was last sent. */
interface Frame {
  /** Counts up with each change. */
  version: number;
  bytes: Buffer;
  /** The tick at which it may be made again. */
  dueTick: number;
}

interface Viewer {
  response: ServerResponse;
  parts: readonly PagePart[];
  /** Version of each part that it was sent. */
  sent: Map<PagePart, number>;
  /** Ticks in a row at which it had not taken what it was sent before. */
  stalledTicks: number;
}

/** A part that is larger is made and sent less often: so many bytes per tick and viewer. */
const bytesPerTick = 64 * 1024;
/** Ticks after which one that does not read is let go. */
const mostStalledTicks = 20;
/** Between so many viewers and the next whatever else waits gets its turn: a request must not wait for fifty pages. */
const servedAtOnce = 4;
/** After which a browser asks again when the connection is lost, ms. */
const retryMs = 1000;

/**
 * All who watch, over server-sent events. What a viewer has not read yet is never more than one of each part: at a tick it
 * is sent what changed since, or, while it still has to read, nothing. Costs nothing while nobody watches.
 */
export class Viewers {
  readonly #options: ViewersOptions;
  readonly #viewers = new Set<Viewer>();
  readonly #frames = new Map<PagePart, Frame>();
  #timer: NodeJS.Timeout | undefined;
  #tick = 0;

  constructor(options: ViewersOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#viewers.size;
  }

  get isFull(): boolean {
    return this.#viewers.size >= this.#options.max;
  }

  /** Sends events until either side closes. */
  open(response: ServerResponse, parts: readonly PagePart[]): void {
    const viewer: Viewer = { response, parts, sent: new Map(), stalledTicks: 0 };
    response.writeHead(200, { ...securityHeaders, 'content-type': 'text/event-stream; charset=utf-8' });
    response.write(`retry: ${retryMs}\n\n`);
    this.#viewers.add(viewer);
    response.once('close', () => this.#closed(viewer));
    response.on('error', () => this.#closed(viewer));
    this.#timer ??= setInterval(() => this.#look(), this.#options.tickMs);
    this.#send(viewer, tickFrame(this.#options.now()));
  }

  /** Ends every stream: a browser asks again elsewhere, or when we are back. */
  close(): void {
    for (const { response } of this.#viewers) response.end();
  }

  #closed(viewer: Viewer): void {
    this.#viewers.delete(viewer);
    if (this.#viewers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    // Some of them are large, and the next viewer wants them new.
    this.#frames.clear();
  }

  #look(): void {
    this.#tick += 1;
    const beat = tickFrame(this.#options.now());
    const waiting = [...this.#viewers];
    const serveSome = () => {
      for (const viewer of waiting.splice(0, servedAtOnce)) this.#serve(viewer, beat);
      if (waiting.length > 0) setImmediate(serveSome);
    };
    serveSome();
  }

  #serve(viewer: Viewer, beat: Buffer): void {
    if (viewer.response.destroyed || viewer.response.writableEnded) return;
    if (viewer.response.writableLength === 0) {
      viewer.stalledTicks = 0;
      this.#send(viewer, beat);
    } else {
      viewer.stalledTicks += 1;
      if (viewer.stalledTicks > mostStalledTicks) viewer.response.destroy();
    }
  }

  #send({ response, parts, sent }: Viewer, beat: Buffer): void {
    response.cork();
    response.write(beat);
    for (const part of parts) {
      const frame = this.#frameOf(part);
      if (frame === undefined || sent.get(part) === frame.version) continue;
      sent.set(part, frame.version);
      response.write(frame.bytes);
    }
    response.uncork();
  }

  #frameOf(part: PagePart): Frame | undefined {
    const last = this.#frames.get(part);
    if (last !== undefined && this.#tick < last.dueTick) return last;
    const bytes = this.#make(part);
    if (bytes === undefined) return last;
    const isNew = last === undefined || !last.bytes.equals(bytes);
    const frame = {
      version: (last?.version ?? 0) + (isNew ? 1 : 0),
      bytes,
      dueTick: this.#tick + Math.ceil(bytes.length / bytesPerTick),
    };
    this.#frames.set(part, frame);
    return frame;
  }

  #make(part: PagePart): Buffer | undefined {
    try {
      return Buffer.from(`event: ${part}\ndata: ${JSON.stringify(this.#options.parts[part]())}\n\n`);
    } catch (error) {
      this.#options.onError(error);
      return undefined;
    }
  }
}

/** That we are there, and what time it is here: a browser's clock may be minutes away. */
function tickFrame(nowMs: number): Buffer {
  return Buffer.from(`event: tick\ndata: ${JSON.stringify({ nowMs })}\n\n`);
}
