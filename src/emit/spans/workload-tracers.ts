import type { Tracer } from '@opentelemetry/api';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import { AlwaysOnSampler, type IdGenerator, type SpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import {
  ATTR_SERVICE_INSTANCE_ID,
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_NAMESPACE,
} from '@opentelemetry/semantic-conventions';
import { LRUCache } from 'lru-cache';
import type { Reporter } from '../../model/reporter.ts';

export interface WorkloadTracersOptions {
  /** Workloads that are held at once; the least recently used is made anew when it comes back. */
  workloads: number;
  /** Of this replica. */
  instanceId: string;
  version: string;
  /** What every resource has besides, such as `deployment.environment.name`; `service.*` is the workload's own. */
  resourceAttributes: Readonly<Record<string, string>>;
  ids: IdGenerator;
  processor: SpanProcessor;
}

/** A value longer than this is cut by the SDK. */
const longestValue = 2048;

/**
 * One tracer per workload, because `service.name` belongs to a resource: a trace view then shows the mesh, not one box.
 * They share the processor, so a tracer that leaves needs no shutdown: shut down the processor once.
 */
export class WorkloadTracers {
  readonly #options: WorkloadTracersOptions;
  readonly #tracers: LRUCache<string, Tracer>;

  constructor(options: WorkloadTracersOptions) {
    this.#options = options;
    this.#tracers = new LRUCache({ max: options.workloads });
  }

  get size(): number {
    return this.#tracers.size;
  }

  get({ workload, namespace }: Reporter): Tracer {
    const key = `${namespace}\n${workload}`;
    const known = this.#tracers.get(key);
    if (known !== undefined) return known;
    const tracer = this.#make(workload, namespace);
    this.#tracers.set(key, tracer);
    return tracer;
  }

  #make(workload: string, namespace: string): Tracer {
    const { instanceId, version, resourceAttributes, ids, processor } = this.#options;
    const resource = defaultResource().merge(
      resourceFromAttributes({
        ...withoutService(resourceAttributes),
        [ATTR_SERVICE_NAME]: workload === '' ? 'unknown_service:envoy' : workload,
        ...(namespace === '' ? {} : { [ATTR_SERVICE_NAMESPACE]: namespace }),
        [ATTR_SERVICE_INSTANCE_ID]: instanceId,
      }),
    );
    const provider = new TracerProvider({
      resource,
      sampler: new AlwaysOnSampler(),
      idGenerator: ids,
      spanProcessors: [processor],
      spanLimits: { attributeValueLengthLimit: longestValue },
    });
    return provider.getTracer('sidelight', version);
  }
}

function withoutService(attributes: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(attributes).filter(([name]) => !name.startsWith('service.')));
}
