import { z } from 'zod';
import { pinReasons } from '../../model/advice.ts';
import { profiles, reporterKinds } from '../../model/reporter.ts';
import { pins, pinUnknownReasons } from '../../model/verdict.ts';
import { sourceKinds } from '../../model/view.ts';

/*
 * What is read of a replica's answers, and no more: a newer replica may say more. The words are closed, so that one that
 * this command does not know is an error and never taken for something else.
 */

/** Read only, so that an answer that was made here fits too. */
type Seen<T> = { readonly [K in keyof T]: Seen<T[K]> };

const ms = z.number();
const count = z.number().min(0);

const reporter = z.object({
  kind: z.enum(reporterKinds),
  workload: z.string(),
  namespace: z.string(),
  pod: z.string(),
  nodeId: z.string(),
  envoyVersion: z.string(),
});

const holder = z.object({
  reporter,
  layer: z.enum(['http', 'tcp']),
  connectionId: z.string(),
  state: z.enum(['open', 'idle', 'unseen']),
  pin: z.enum(pins),
  reason: z.enum(pinUnknownReasons).optional(),
  openedMs: ms,
  lastUsedMs: ms,
  mayBeOpenUntilMs: ms.optional(),
  requests: count,
  bytes: count,
  reporterConnected: z.boolean(),
  advice: z.object({ reason: z.enum(pinReasons), changes: z.array(z.string()) }).optional(),
});

const endpoint = z.object({
  cluster: z.string(),
  endpoint: z.string(),
  state: z.enum(['listed', 'left', 'unlisted', 'unknown']),
  reason: z.enum(pinUnknownReasons).optional(),
  source: z.enum(sourceKinds).optional(),
  subject: z.string().optional(),
  listedBy: z.array(z.string()).default([]),
  leftAtMs: ms.optional(),
  graceMs: count.optional(),
  lastUsedMs: ms.optional(),
  connections: z.object({ open: count, idle: count, unseen: count }),
  forgotten: z.object({ mayBeOpenUntilMs: ms.optional() }).optional(),
  holders: z.array(holder),
  drain: z
    .object({
      requests: count,
      bytes: count,
      lastUsedMs: ms.optional(),
      reporters: z.array(z.object({ reporter })),
    })
    .optional(),
});

/** `/api/v1/endpoints` */
export const endpointsAnswer = z.object({
  nowMs: ms,
  startedMs: ms,
  truncated: z.boolean(),
  endpoints: z.array(endpoint),
});
export type EndpointsSeen = Seen<z.output<typeof endpointsAnswer>>;
export type EndpointSeen = EndpointsSeen['endpoints'][number];
export type HolderSeen = EndpointSeen['holders'][number];

/** `/api/v1/reporters` */
export const reportersAnswer = z.object({
  nowMs: ms,
  truncated: z.boolean().default(false),
  expected: z
    .object({
      subject: z.string(),
      stale: z.boolean(),
      lastError: z.string().optional(),
      truncated: z.boolean(),
      missing: z.array(z.object({ namespace: z.string(), pod: z.string() })),
    })
    .optional(),
  reporters: z.array(
    reporter.extend({
      profile: z.enum(profiles),
      // Replicas from before there were versions do not say it: that was version 1.
      configVersion: z.int().default(1),
      streams: count,
      lastEntryMs: ms,
    }),
  ),
});
export type ReportersSeen = Seen<z.output<typeof reportersAnswer>>;

/** `/api/v1/clusters` */
export const clustersAnswer = z.object({
  clusters: z.array(
    z.object({
      cluster: z.string(),
      subject: z.string(),
      stale: z.boolean(),
      lastError: z.string().optional(),
    }),
  ),
});

/** `/api/v1/pins`: of those that cleared, how. */
export const pinsAnswer = z.object({
  nowMs: ms,
  cleared: z.array(
    z.object({
      cluster: z.string(),
      endpoint: z.string(),
      connectionId: z.string(),
      reporter: reporter.pick({ pod: true, nodeId: true }),
      openedMs: ms,
      clearedMs: ms,
      how: z.string(),
    }),
  ),
});
export type PinsSeen = z.output<typeof pinsAnswer>;
