import { z } from 'zod';
import { parseHostPort } from '../lib/host-port.ts';
import { logLevels } from '../lib/logger.ts';
import { grpcStatusNames } from '../model/grpc-status.ts';
import { discovery } from './discovery-schema.ts';
import {
  address,
  addressOrSocket,
  day,
  dnsName,
  isObject,
  minute,
  oneOf,
  second,
  section,
  url,
  whole,
  wholeOrAbsent,
} from './fields.ts';

const grpcStatus = z.union([z.enum(grpcStatusNames), z.int().min(0).max(16)]);
const grpcStatuses = z.array(grpcStatus);
const statusKind = 'list of gRPC status names or numbers 0-16';

const listen = section(
  {
    grpc: addressOrSocket(
      '127.0.0.1:50051',
      'Where Envoy connects: ext_proc, access log and health service. A unix socket is open to all who can reach its folder.',
    ),
    http: address(
      '127.0.0.1:9464',
      'Health, metrics and API. It has no authentication: loopback unless told otherwise.',
    ),
  },
  'Addresses that are listened on.',
);

const tagging = section(
  {
    responseHeaders: oneOf(
      ['never', 'on_request', 'always'],
      'never',
      'Whether responses carry x-sidelight-* headers; on_request: only if the request has x-sidelight-debug with the secret.',
    ),
    debugSecret: z
      .string()
      .min(16)
      .max(256)
      .optional()
      .meta({ meaning: 'What x-sidelight-debug must say.', kind: 'text of 16 to 256 characters', secret: true }),
  },
  'What the tagger gives to the client.',
).refine((value) => value.responseHeaders !== 'on_request' || value.debugSecret !== undefined, {
  error: 'a secret of 16 to 256 characters, because tagging.responseHeaders is on_request',
  path: ['debugSecret'],
  when: isObject,
});

const httpFailFromMeaning = 'The lowest HTTP status that is a failure.';
const grpcFailMeaning = 'gRPC statuses that are failures; a missing status at the end always is one.';

const success = section(
  {
    httpFailFrom: whole(500, [100, 600], 'HTTP status', httpFailFromMeaning),
    grpcFail: grpcStatuses
      .default(['UNKNOWN', 'DEADLINE_EXCEEDED', 'UNIMPLEMENTED', 'INTERNAL', 'UNAVAILABLE', 'DATA_LOSS'])
      .meta({ meaning: grpcFailMeaning, kind: statusKind }),
  },
  'Which responses are successes.',
);

const cluster = z.strictObject({
  match: z.string().min(1).max(512).meta({ meaning: 'A cluster name, or a pattern in which * stands for any text.' }),
  host: dnsName('The name to ask DNS for; absent: the host in an Istio cluster name, if there is one.'),
  service: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/)
    .optional()
    .meta({
      meaning: 'The Kubernetes Service behind it; absent: the one in an Istio cluster name, if there is one.',
      kind: 'NAMESPACE/NAME',
    }),
  graceMs: wholeOrAbsent(
    [0, day],
    'ms',
    'How long after it left an endpoint is only draining; absent: 10 s, 15 s by EndpointSlices, or TTL + refresh if longer, or 10 min where DNS answers rotate.',
  ),
  windowMs: wholeOrAbsent(
    [0, day],
    'ms',
    'How long an address counts as listed after the last DNS answer that had it, for names that rotate; absent: 0.',
  ),
  idleTimeoutMs: wholeOrAbsent(
    [0, 7 * day],
    'ms',
    "After how long without use the proxy closes an upstream connection, 0: never; absent: of HTTP what Envoy's admin interface says, else 1 h, Envoy's default.",
  ),
  expectPin: z.boolean().default(false).meta({
    meaning: 'Connections to endpoints that left are wanted here: they are shown and marked, but no cause for alarm.',
  }),
  slowMs: wholeOrAbsent([1, day], 'ms', 'Exchanges that take longer keep their trace; absent: traces.slowMs.'),
  success: z
    .strictObject({
      httpFailFrom: wholeOrAbsent([100, 600], 'HTTP status', `${httpFailFromMeaning} Absent: success.httpFailFrom.`),
      grpcFail: grpcStatuses
        .optional()
        .meta({ meaning: `${grpcFailMeaning} Absent: success.grpcFail.`, kind: statusKind }),
    })
    .optional()
    .meta({ meaning: 'Overrides the status rule.' }),
});

const join = section(
  {
    // Envoy's `buffer_flush_interval` is 1 s by default: entries of one exchange may come that far apart.
    lingerMs: whole(
      2500,
      [1001, minute],
      'ms',
      "From an exchange's end to its closing; more than Envoy's buffer_flush_interval (1 s).",
    ),
    maxWaitMs: whole(
      15 * minute,
      [5 * second, day],
      'ms',
      'How long the end of an exchange is waited for; then it is unknown.',
    ),
    maxExchanges: whole(50_000, [1, 1_000_000], 'exchanges', 'Exchanges held at once; the oldest leaves as unknown.'),
    maxAttemptsPerExchange: whole(64, [1, 1024], 'attempts', 'Attempts kept of one exchange.'),
    streamMaxAgeMs: whole(
      5 * minute,
      [second, day],
      'ms',
      'Age at which a log stream is ended, so that Envoy balances it anew; ±20 %.',
    ),
  },
  'How log entries become exchanges.',
).refine((value) => !(value.maxWaitMs <= value.lingerMs), {
  error: 'more than join.lingerMs',
  path: ['maxWaitMs'],
  when: isObject,
});

const pins = section(
  {
    maxConnections: whole(20_000, [1, 1_000_000], 'connections', 'Upstream connections held for the pin gauges.'),
    // Envoy keeps entries back for up to a second by default: by then one must not seem quiet.
    quietMs: whole(minute, [2 * second, day], 'ms', 'A connection without a request for this long leaves the gauges.'),
  },
  'The table of upstream connections.',
);

const traces = section(
  {
    rootSampleRatio: z.number().min(0).max(1).default(0.05).meta({
      unit: 'share',
      meaning: 'Share of exchanges without a parent that are sampled; with one, the parent decides.',
    }),
    keepPerSecond: z
      .number()
      .min(0)
      .max(10_000)
      .default(5)
      .meta({ unit: 'exchanges/s', meaning: 'Unsampled exchanges kept for a reason, per cluster and outcome.' }),
    keepBurst: whole(20, [1, 100_000], 'exchanges', 'As keepPerSecond, at once.'),
    slowMs: whole(second, [1, day], 'ms', 'Exchanges that take longer are kept.'),
    jaegerUrl: url(
      'Where Jaeger is, or another viewer: the page links to a trace there. {traceId} stands for the id; without it, /trace/{traceId} is added.',
    ),
  },
  'Which exchanges become spans.',
);

const page = section(
  {
    enabled: z.boolean().default(true).meta({ meaning: 'Whether listen.http serves the live page at /.' }),
    quietForMs: whole(
      minute,
      [second, day],
      'ms',
      'How long nobody may have used an endpoint before the page says drained: as --quiet-for of sidelight drained.',
    ),
  },
  'The live page.',
);

const otlp = section(
  {
    endpoint: url('Where spans and metrics are sent; absent: nowhere.'),
    protocol: oneOf(['grpc', 'http/protobuf'], 'grpc', 'How they are sent.'),
    intervalMs: whole(10 * second, [100, 10 * minute], 'ms', 'Time between two exports of metrics.'),
  },
  'OTLP export.',
);

const limits = section(
  {
    messageBytes: whole(1 << 20, [4096, 1 << 26], 'bytes', 'Largest gRPC message; a larger one ends its stream.'),
    tagsPerEntry: whole(64, [16, 1024], 'tags', 'Custom tags read of one log entry.'),
    headerBytes: whole(16_384, [1024, 1 << 20], 'bytes', 'Largest header block of one request to this service.'),
    textBytes: whole(256, [16, 4096], 'bytes', 'Texts that become label values or attributes; longer ones are cut.'),
    clusters: whole(4000, [1, 100_000], 'clusters', 'Clusters with series of their own; the rest is "other".'),
    endpoints: whole(10_000, [1, 1_000_000], 'endpoints', 'Endpoints with series of their own; the rest is "other".'),
    reporters: whole(
      2000,
      [1, 100_000],
      'reporters',
      'Proxies held for coverage; the one not heard of for longest leaves.',
    ),
    logStreams: whole(20_000, [1, 1_000_000], 'streams', 'Access log streams open at once; further ones are refused.'),
    processStreams: whole(
      10_000,
      [1, 1_000_000],
      'streams',
      'ext_proc streams open at once; further ones are refused.',
    ),
    recentExchanges: whole(500, [0, 100_000], 'exchanges', 'Exchanges kept for the API and the page.'),
  },
  'Bounds. Over one, that input alone is refused or cut, and counted.',
);

const log = section(
  {
    level: oneOf(logLevels, 'info', 'The least severe level that is written.'),
    linesPerSecond: whole(10, [1, 10_000], 'lines/s', 'Lines per event name; further ones are counted in one line.'),
  },
  'The log, JSON lines on stderr.',
);

/** The whole config: default, unit, range and meaning of every field. docs/reference/config.md is made of it. */
export const configSchema = z
  .strictObject({
    listen,
    tagging,
    success,
    clusters: z
      .array(cluster)
      .max(10_000)
      .default([])
      .meta({ meaning: 'What differs per cluster; the first match wins.' }),
    discovery,
    join,
    pins,
    traces,
    page,
    otlp,
    limits,
    log,
    shutdownMs: whole(10 * second, [0, 10 * minute], 'ms', 'From SIGTERM to the exit, at most.'),
  })
  .refine(({ listen: chosen }) => chosen === undefined || chosen.grpc !== chosen.http || isPortZero(chosen.grpc), {
    error: 'another address than listen.grpc',
    path: ['listen', 'http'],
    when: isObject,
  });

/** Port 0 asks the system for a free one, each time another. */
function isPortZero(text: unknown): boolean {
  return typeof text === 'string' && parseHostPort(text)?.port === 0;
}

export type Config = z.output<typeof configSchema>;
/** As a user writes it: everything is optional but `clusters[].match`. */
export type ConfigInput = z.input<typeof configSchema>;
