/** What a client saw of one request. */
export interface ClientResult {
  /** Absent: no response head came. */
  status: number | undefined;
  /** The whole response came, with a status below 500 and, for gRPC, status 0. */
  ok: boolean;
  durationMs: number;
  /** Why the response was not whole: the error's code or message; `aborted` where the client itself left. */
  error: string | undefined;
  /** From the trailers or headers; absent where the server sent none. */
  grpcStatus: number | undefined;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  bodyBytes: number;
}

export interface RequestOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  /** Leave after so many ms, whatever has come by then. */
  abortAfterMs?: number;
  /** Leave when the first part of the body comes. */
  abortInBody?: boolean;
}

/** An HTTP client that never throws for what happens to a request and keeps a log of all that it saw. */
export interface LoadClient {
  /** Every finished request, by its end. */
  log: readonly ClientResult[];
  request(path: string, options?: RequestOptions): Promise<ClientResult>;
  close(): void;
}

export interface LoadOptions {
  /** Requests in flight at once. */
  concurrency: number;
  /** Pause of each of them after a request, ms. */
  pauseMs?: number;
  /** How many in all; absent: until `signal`. */
  total?: number;
  signal?: AbortSignal;
}

/** Sends requests in closed loops. Resolves when `total` are done, or at `signal` when those in flight are done. */
export async function drive(send: () => Promise<unknown>, options: LoadOptions): Promise<void> {
  let left = options.total ?? Number.POSITIVE_INFINITY;
  const loop = async () => {
    while (left > 0 && !options.signal?.aborted) {
      left -= 1;
      await send();
      if (options.pauseMs !== undefined) await new Promise((resolve) => setTimeout(resolve, options.pauseMs));
    }
  };
  await Promise.all(Array.from({ length: options.concurrency }, loop));
}

/** Gathers what becomes of one request; the two HTTP clients share it. */
export class ResultBuilder {
  readonly #begin = performance.now();
  #status: number | undefined;
  #headers: ClientResult['headers'] = {};
  #grpcStatus: number | undefined;
  #bodyBytes = 0;

  head(status: number, headers: ClientResult['headers']): void {
    this.#status = status;
    this.#headers = headers;
    this.trailers(headers);
  }

  body(chunk: Buffer): void {
    this.#bodyBytes += chunk.length;
  }

  trailers(trailers: ClientResult['headers']): void {
    const text = trailers['grpc-status'];
    if (typeof text === 'string') this.#grpcStatus = Number(text);
  }

  finish(error: string | undefined): ClientResult {
    const status = this.#status;
    return {
      status,
      ok: error === undefined && status !== undefined && status < 500 && (this.#grpcStatus ?? 0) === 0,
      durationMs: performance.now() - this.#begin,
      error,
      grpcStatus: this.#grpcStatus,
      headers: this.#headers,
      bodyBytes: this.#bodyBytes,
    };
  }
}
