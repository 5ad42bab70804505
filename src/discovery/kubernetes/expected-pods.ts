import type { Clock } from '../../lib/clock.ts';
import { SidelightError } from '../../lib/errors.ts';
import { type ExpectedReporter, type ExpectedReporters, podKey } from '../../model/expected-reporter.ts';
import { isStale } from '../../model/view.ts';
import type { AccessSource } from './access.ts';
import { type ApiClient, createApiClient, failure } from './api-client.ts';
import { metadataOnly, readPodPage } from './pod-page.ts';

/** Pods of one namespace, by their labels. */
export interface PodSelector {
  namespace: string;
  /** As `kubectl get pods --selector` takes it. */
  selector: string;
}

export interface ExpectedPodsOptions {
  access: AccessSource;
  selectors: readonly PodSelector[];
  /** For a page of a list. */
  timeoutMs: number;
  staleAfterMs: number;
  now: Clock;
  /** A failed round: the last list stays, and grows old. */
  onError(error: SidelightError): void;
}

const pageSize = 500;
/** So many pods are kept; what is over them is an error, for a list that is cut would say that all report. */
const mostPods = 10_000;
/** An Envoy opens its log stream with its first request, and a new pod has had none. */
const newPodMs = 60_000;

/** The pods whose proxies should report, listed anew in time for the list never to be stale while the server answers. */
export class ExpectedPods {
  readonly #options: ExpectedPodsOptions;
  readonly #client: ApiClient;
  readonly #stopping = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #known: ExpectedReporters;

  constructor(options: ExpectedPodsOptions) {
    this.#options = options;
    this.#client = createApiClient(options.access, options.timeoutMs);
    const subject = options.selectors.map(({ namespace, selector }) => `pods ${selector} in ${namespace}`).join(', ');
    const { staleAfterMs } = options;
    this.#known = { subject, pods: [], lastAnswerMs: undefined, staleAfterMs, lastError: undefined };
  }

  start(): void {
    void this.#round();
  }

  /** Nothing is called back after it. The list stays. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#stopping.abort();
  }

  list(): ExpectedReporters {
    return this.#known;
  }

  /** How many there are; `undefined`: the list is too old to tell. */
  count(): number | undefined {
    return isStale(this.#known, this.#options.now()) ? undefined : this.#known.pods.length;
  }

  async #round(): Promise<void> {
    const { timeoutMs, staleAfterMs, now } = this.#options;
    const beganMs = now();
    try {
      const pods = await this.#all(beganMs);
      this.#known = { ...this.#known, pods, lastAnswerMs: beganMs, lastError: undefined };
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      const told = failure('a list of pods', error);
      this.#known = { ...this.#known, lastError: told.message };
      this.#options.onError(told);
    }
    // One round may fail.
    this.#timer = setTimeout(() => void this.#round(), Math.max(1000, (staleAfterMs - timeoutMs) / 2)).unref();
  }

  async #all(nowMs: number): Promise<ExpectedReporter[]> {
    const pods = new Map<string, ExpectedReporter>();
    for (const { namespace, selector } of this.#options.selectors) {
      let next: string | undefined;
      do {
        const path = pathOf(namespace, selector, next);
        const page = readPodPage(await this.#client.get(path, this.#stopping.signal, metadataOnly));
        for (const { name, createdMs, ending } of page.pods) {
          const one = { namespace, pod: name };
          if (!ending && createdMs + newPodMs <= nowMs) pods.set(podKey(one), one);
        }
        if (pods.size > mostPods)
          throw new SidelightError('bound_reached', {
            path: 'discovery.kubernetes.expectedReporters',
            value: `${selector} in ${namespace}`,
            expected: `no more than ${mostPods} pods`,
          });
        ({ next } = page);
      } while (next !== undefined);
    }
    return [...pods.values()];
  }
}

function pathOf(namespace: string, labelSelector: string, next: string | undefined): string {
  // A pod that is over (a job's) has no proxy any more.
  const query = new URLSearchParams({ labelSelector, fieldSelector: 'status.phase=Running', limit: `${pageSize}` });
  if (next !== undefined) query.set('continue', next);
  return `/api/v1/namespaces/${namespace}/pods?${query.toString()}`;
}
