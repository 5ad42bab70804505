import { attribute as a, type MetricAttribute } from './attributes.ts';

export type MetricKind = 'counter' | 'histogram' | 'gauge';

/** One metric. Units are UCUM: `s`, `By`, or an annotation such as `{request}`, which adds nothing to a Prometheus name. */
export interface Metric {
  name: string;
  kind: MetricKind;
  unit: string;
  description: string;
  attributes: readonly MetricAttribute[];
  /** Upper bounds, in the metric's unit; only of a histogram. */
  buckets?: readonly number[];
}

const reporter = [a.reporterKind, a.reporterWorkload, a.reporterNamespace] as const;
const reported = [a.cluster, ...reporter] as const;

const requestSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;
const ageSeconds = [1, 10, minute, 5 * minute, 15 * minute, hour, 4 * hour, 12 * hour, day, 7 * day, 30 * day];
const tagSeconds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1];

/** Every metric that Sidelight exports. docs/reference/metrics.md is held to this table, both ways. */
export const metrics = {
  requests: {
    name: 'sidelight.requests',
    kind: 'counter',
    unit: '{request}',
    description: 'Exchanges by what became of them. The rates are computed from it.',
    attributes: [...reported, a.outcome, a.localResult, a.hedged],
  },
  requestDuration: {
    name: 'sidelight.request.duration',
    kind: 'histogram',
    unit: 's',
    description: 'From the first byte of the request to the last of the response, retries included.',
    attributes: [...reported, a.outcome],
    buckets: requestSeconds,
  },
  attemptedRequests: {
    name: 'sidelight.attempted.requests',
    kind: 'counter',
    unit: '{request}',
    description: 'Exchanges with at least one attempt: what amplification divides by.',
    attributes: reported,
  },
  retriedRequests: {
    name: 'sidelight.retried.requests',
    kind: 'counter',
    unit: '{request}',
    description:
      'Profile tag only: requests that Envoy tried more than once. Whether that masked a failure is not seen.',
    attributes: reported,
  },
  attempts: {
    name: 'sidelight.attempts',
    kind: 'counter',
    unit: '{attempt}',
    description: 'Attempts that reached a peer, the ones that retries hid included.',
    attributes: [...reported, a.endpoint, a.result, a.cause, a.hedged],
  },
  maskedLatency: {
    name: 'sidelight.masked.latency',
    kind: 'histogram',
    unit: 's',
    description:
      'What masking cost: from the start of the first attempt to that of the winner. Hedged ones are left out.',
    attributes: [...reported, a.cause],
    buckets: requestSeconds,
  },
  tcpConnections: {
    name: 'sidelight.tcp.connections',
    kind: 'counter',
    unit: '{connection}',
    description: 'TCP-proxied connections that ended. Nothing can retry them.',
    attributes: [...reported, a.endpoint, a.result, a.cause],
  },
  connectionAge: {
    name: 'sidelight.upstream.connection.age',
    kind: 'histogram',
    unit: 's',
    description: 'How old the upstream connection was when a request was sent on it; layer tcp: when it ended.',
    attributes: [...reported, a.layer],
    buckets: ageSeconds,
  },
  pinnedRequests: {
    name: 'sidelight.pinned.requests',
    kind: 'counter',
    unit: '{request}',
    description: 'Exchanges by whether their endpoint was still listed.',
    attributes: [...reported, a.pin, a.expected],
  },
  pins: {
    name: 'sidelight.pins',
    kind: 'gauge',
    unit: '{connection}',
    description: 'Upstream connections in use, by whether their endpoint is still listed. Gone when they are.',
    attributes: [...reported, a.endpoint, a.pin, a.layer, a.expected],
  },
  pinOldest: {
    name: 'sidelight.pin.oldest',
    kind: 'gauge',
    unit: 's',
    description: 'The age of the oldest of them. Merge by max.',
    attributes: [...reported, a.endpoint, a.pin, a.layer, a.expected],
  },
  pinBytes: {
    name: 'sidelight.pin.bytes',
    kind: 'counter',
    unit: 'By',
    description:
      'Bytes both ways over connections to an endpoint that left. Gone some minutes after the last such connection.',
    attributes: [...reported, a.endpoint],
  },
  pinRequests: {
    name: 'sidelight.pin.requests',
    kind: 'counter',
    unit: '{request}',
    description:
      'Requests that ended on connections to an endpoint that left. Gone some minutes after the last such connection.',
    attributes: [...reported, a.endpoint],
  },
  pinEvents: {
    name: 'sidelight.pin.events',
    kind: 'counter',
    unit: '{event}',
    description: 'What happened in the lives of pins: their endpoint left, they became stale, they were cleared.',
    attributes: [...reported, a.layer, a.event, a.how],
  },
  endpointListed: {
    name: 'sidelight.endpoint.listed',
    kind: 'gauge',
    unit: '{endpoint}',
    description: 'How many endpoints the source lists.',
    attributes: [a.cluster, a.source],
  },
  endpointUnused: {
    name: 'sidelight.endpoint.unused',
    kind: 'gauge',
    unit: '{endpoint}',
    description: 'Listed endpoints that got no request in the last 5 minutes although their cluster had some.',
    attributes: [a.cluster],
  },
  discoveryAge: {
    name: 'sidelight.discovery.age',
    kind: 'gauge',
    unit: 's',
    description: 'Since the last good answer of the source. Absent until there was one.',
    attributes: [a.cluster, a.source],
  },
  discoveryChanges: {
    name: 'sidelight.discovery.changes',
    kind: 'counter',
    unit: '{change}',
    description: 'Endpoints that came and left.',
    attributes: [a.cluster, a.source, a.change],
  },
  coverageReporters: {
    name: 'sidelight.coverage.reporters',
    kind: 'gauge',
    unit: '{reporter}',
    description: 'Proxies that report now. A zero elsewhere is a fact only where this is not zero.',
    attributes: [a.profile],
  },
  coverageSilent: {
    name: 'sidelight.coverage.silent',
    kind: 'gauge',
    unit: '{reporter}',
    description: 'Proxies that reported here before and do not now. What they still use is not known.',
    attributes: [a.profile],
  },
  coverageExpected: {
    name: 'sidelight.coverage.expected',
    kind: 'gauge',
    unit: '{reporter}',
    description:
      'Proxies that should report, to any replica. Absent where the config does not say it, or it is not known now.',
    attributes: [],
  },
  coverageLastEntryAge: {
    name: 'sidelight.coverage.last_entry.age',
    kind: 'gauge',
    unit: 's',
    description: 'Since the last entry or message of any of them.',
    attributes: [a.profile],
  },
  selfStreams: {
    name: 'sidelight.self.streams',
    kind: 'gauge',
    unit: '{stream}',
    description: 'Streams that are open now.',
    attributes: [a.stream],
  },
  selfMessages: {
    name: 'sidelight.self.messages',
    kind: 'counter',
    unit: '{message}',
    description: 'Messages received.',
    attributes: [a.stream],
  },
  selfDecodeErrors: {
    name: 'sidelight.self.decode.errors',
    kind: 'counter',
    unit: '{message}',
    description: 'Messages that could not be decoded. Each cost its own stream, nothing else.',
    attributes: [a.stream],
  },
  selfRefused: {
    name: 'sidelight.self.refused',
    kind: 'counter',
    unit: '{input}',
    description: 'Inputs refused, cut or pushed out because a bound was reached.',
    attributes: [a.limit],
  },
  selfTagDuration: {
    name: 'sidelight.self.tag.duration',
    kind: 'histogram',
    unit: 's',
    description: 'From an ext_proc message to its answer.',
    attributes: [],
    buckets: tagSeconds,
  },
  selfFailOpen: {
    name: 'sidelight.self.fail_open',
    kind: 'counter',
    unit: '{answer}',
    description: 'ext_proc answers that changed nothing because the facts could not be had.',
    attributes: [a.reason],
  },
  selfJoinEvents: {
    name: 'sidelight.self.join.events',
    kind: 'counter',
    unit: '{entry}',
    description: 'Access log entries that did not join in the usual way.',
    attributes: [a.event],
  },
  selfIncomplete: {
    name: 'sidelight.self.exchanges.incomplete',
    kind: 'counter',
    unit: '{exchange}',
    description: 'Exchanges whose facts are not whole.',
    attributes: [a.reason],
  },
  selfAttemptMismatches: {
    name: 'sidelight.self.attempt_count.mismatches',
    kind: 'counter',
    unit: '{exchange}',
    description: 'Exchanges in which a count of attempts that Envoy gave differs from the entries. The entries decide.',
    attributes: [],
  },
  selfSpansKept: {
    name: 'sidelight.self.spans.kept',
    kind: 'counter',
    unit: '{span}',
    description: 'Spans made: because the trace is sampled, or kept in spite of it.',
    attributes: [a.reason],
  },
  selfSpansDropped: {
    name: 'sidelight.self.spans.dropped',
    kind: 'counter',
    unit: '{span}',
    description: 'Spans not made (unsampled, rate_limited), or lost (queue_full, export_failed).',
    attributes: [a.reason],
  },
  selfExports: {
    name: 'sidelight.self.exports',
    kind: 'counter',
    unit: '{export}',
    description: 'OTLP exports.',
    attributes: [a.signal, a.result],
  },
  selfLabelOverflow: {
    name: 'sidelight.self.label.overflow',
    kind: 'counter',
    unit: '{observation}',
    description: 'Observations whose label became `other` because a table of labels is full.',
    attributes: [a.label],
  },
  selfSeries: {
    name: 'sidelight.self.series',
    kind: 'gauge',
    unit: '{series}',
    description: 'Series held for counters and histograms.',
    attributes: [],
  },
  selfEventLoopLag: {
    name: 'sidelight.self.event_loop.lag',
    kind: 'gauge',
    unit: 's',
    description: 'How late the event loop is, 99th percentile.',
    attributes: [],
  },
} as const satisfies Record<string, Metric>;
