import { PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { MetricReader, type ResourceMetrics } from '@opentelemetry/sdk-metrics';
import { type Metric, metrics } from '../names.ts';
import { prometheusName } from '../prometheus-name.ts';

/** What `/metrics` answers. */
export interface Scrape {
  body: string;
  contentType: string;
}

const contentType = 'text/plain; version=0.0.4; charset=utf-8';
const byName: ReadonlyMap<string, Metric> = new Map(Object.values(metrics).map((metric) => [metric.name, metric]));

/** Reads when it is asked, and pushes nothing. */
export class ScrapeReader extends MetricReader {
  // Without scope labels: Prometheus does not add them to what comes over OTLP either, unless told to.
  readonly #serializer = new PrometheusSerializer(undefined, false, undefined, false, true);
  #running: Promise<Scrape> | undefined;

  /** Scrapes that come while one is being made share it. Rejects after `shutdown`. */
  scrape(): Promise<Scrape> {
    this.#running ??= this.#make().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #make(): Promise<Scrape> {
    const { resourceMetrics } = await this.collect();
    // The serializer's package brings its own copy of the SDK's types, with the same values in their enums.
    const named: unknown = withPrometheusNames(resourceMetrics);
    const body = this.#serializer.serialize(named as Parameters<PrometheusSerializer['serialize']>[0]);
    return { body, contentType };
  }

  protected override onShutdown(): Promise<void> {
    return Promise.resolve();
  }

  protected override onForceFlush(): Promise<void> {
    return Promise.resolve();
  }
}

/** The serializer would leave units out of names, and write `# UNIT` lines that the text format does not know. */
function withPrometheusNames({ resource, scopeMetrics }: ResourceMetrics): ResourceMetrics {
  return {
    resource,
    scopeMetrics: scopeMetrics.map(({ scope, metrics: list }) => ({
      scope,
      metrics: list.map((data) => {
        const metric = byName.get(data.descriptor.name);
        const name = metric === undefined ? data.descriptor.name : prometheusName(metric);
        return { ...data, descriptor: { ...data.descriptor, name, unit: '' } };
      }),
    })),
  };
}
