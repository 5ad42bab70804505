import { isIP } from 'node:net';
import { z } from 'zod';
import { parseHostPort } from '../lib/host-port.ts';
import { day, flag, isObject, minute, oneOf, second, section, whole } from './fields.ts';

const nameServer = z
  .string()
  .refine((text) => isIP(text) !== 0 || isIP(parseHostPort(text)?.host ?? '') !== 0, 'an IP address, or IP:port');

const dns = section(
  {
    enabled: flag(true, 'Whether DNS is asked for the endpoints of clusters that carried traffic.'),
    servers: z
      .array(nameServer)
      .max(8)
      .default([])
      .meta({ meaning: 'Name servers; empty: those of the system.', kind: 'list of IP or IP:port' }),
    sameResolverAsProxy: flag(
      false,
      'Say true if the proxies get the same answers from these servers. If false, every pin verdict by DNS is unknown.',
    ),
    refreshMs: whole(
      5 * second,
      [500, day],
      'ms',
      'The longest time between two questions; a shorter TTL shortens it.',
    ),
    timeoutMs: whole(2 * second, [50, minute], 'ms', 'How long a name server may take.'),
    staleAfterMs: whole(
      minute,
      [second, day],
      'ms',
      'A view whose last good answer is older than this judges nothing.',
    ),
    ask: oneOf(
      ['first', 'all'],
      'first',
      'first: the servers in order, until one answers. all: each of them; an endpoint is listed while any of them lists it.',
    ),
    maxHosts: whole(1000, [1, 100_000], 'names', 'Names asked for; clusters over it are not covered.'),
  },
  'Discovery by DNS.',
).refine((value) => !(value.staleAfterMs <= value.refreshMs + value.timeoutMs), {
  error: 'more than refreshMs + timeoutMs, or every view is stale between two answers',
  path: ['staleAfterMs'],
  when: isObject,
});

const envoyAdmin = section(
  {
    urls: z
      .array(z.string().refine((text) => URL.parse(text)?.protocol === 'http:', 'http://HOST:PORT'))
      .max(1000)
      .default([])
      .meta({
        meaning: "Envoys' admin interfaces; each is asked, by GET alone, for the clusters that this Envoy reported.",
        kind: 'list of http URLs',
      }),
    refreshMs: whole(5 * second, [500, day], 'ms', 'Time between two rounds of questions.'),
    timeoutMs: whole(2 * second, [50, minute], 'ms', 'How long an answer may take.'),
    staleAfterMs: whole(minute, [second, day], 'ms', 'How long the last answer is believed.'),
  },
  "The proxies' own lists: shown beside the world's, and used for it only where no other source covers a cluster.",
).refine((value) => !(value.staleAfterMs <= value.refreshMs + value.timeoutMs), {
  error: 'more than refreshMs + timeoutMs, or every view is stale between two answers',
  path: ['staleAfterMs'],
  when: isObject,
});

const namespace = z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/);

const kubernetes = section(
  {
    enabled: flag(false, 'Whether the API server is asked for the EndpointSlices of Services that carried traffic.'),
    kubeconfig: z
      .string()
      .min(1)
      .optional()
      .meta({ meaning: "How to reach it, and as whom; absent: as the pod's service account.", kind: 'path' }),
    namespaces: z.array(namespace).min(1).max(1000).optional().meta({
      meaning: 'The only namespaces that are asked for; absent: each with a Service that carries traffic.',
      kind: 'list of namespaces',
    }),
    expectedReporters: z
      .array(
        z.strictObject({
          namespace: namespace.meta({ meaning: 'Where they are.' }),
          selector: z
            .string()
            .min(1)
            .max(1000)
            .meta({ meaning: 'Their labels, as `kubectl get pods --selector` takes them.' }),
        }),
      )
      .max(100)
      .default([])
      .meta({
        meaning:
          'Pods whose proxies should report, by namespace and label selector: coverage then says which do not. It needs list on pods there.',
        kind: 'list of {namespace, selector}',
      }),
    watchMs: whole(
      20 * second,
      [second, 10 * minute],
      'ms',
      'After so long a watch is begun anew, in whole seconds: a quiet one proves itself so.',
    ),
    timeoutMs: whole(
      10 * second,
      [50, minute],
      'ms',
      'How long an answer may take to begin, and a page of a list to end.',
    ),
    staleAfterMs: whole(
      minute,
      [second, day],
      'ms',
      'A view that the API server has not renewed for so long judges nothing.',
    ),
  },
  'Discovery by the EndpointSlices of Kubernetes. It needs list and watch on endpointslices (discovery.k8s.io), no more.',
)
  .refine((value) => value.enabled || value.expectedReporters.length === 0, {
    error: 'true, because expectedReporters are asked for',
    path: ['enabled'],
    when: isObject,
  })
  .refine((value) => !(value.staleAfterMs <= value.watchMs + value.timeoutMs), {
    error: 'more than watchMs + timeoutMs, or a quiet view is stale between two proofs',
    path: ['staleAfterMs'],
    when: isObject,
  });

/** `discovery` of the config. */
export const discovery = section(
  {
    kubernetes,
    dns,
    envoyAdmin,
    stateFile: z.string().min(1).optional().meta({
      meaning: 'Where the view and the pins are kept, so that a restart in mid cut-over does not lose them.',
      kind: 'path',
    }),
    file: z.string().min(1).optional().meta({
      meaning:
        'A watched YAML file, clusters: {NAME: [IP or IP:port]}; it wins over all else. A relative path is taken from the working directory.',
      kind: 'path',
    }),
    fileStaleAfterMs: whole(
      minute,
      [second, day],
      'ms',
      'How long what the file said is believed after it became unreadable or wrong.',
    ),
    maxLeftPerCluster: whole(
      1000,
      [1, 100_000],
      'endpoints',
      'Endpoints remembered after they left; the oldest goes first.',
    ),
  },
  'Where the lists of endpoints come from.',
);
