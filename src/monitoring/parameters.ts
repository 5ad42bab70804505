/** What a threshold counts in. `share`: 0 to 1. `s`: seconds, also as the time that something must last. */
export type ParameterUnit = 'share' | 's' | 'requests' | 'times' | 'attempts per request' | 'bytes per second';

export interface Parameter {
  value: number;
  unit: ParameterUnit;
  /** What it bounds. */
  meaning: string;
  /** Why the default is what it is. */
  reason: string;
}

/** Every threshold of the alerts. `sidelight rules --set NAME=VALUE` takes another value. */
export const parameters = {
  maskedBudget: {
    value: 0.01,
    unit: 'share',
    meaning: 'requests of 30 days that retries may save',
    reason: 'rollouts and single dead pods stay below 1 %; above it a cluster lives off its retries',
  },
  maskedFastBurn: {
    value: 14.4,
    unit: 'times',
    meaning: 'how much faster than that, over an hour and over 5 minutes',
    reason: '2 % of the budget is gone within an hour',
  },
  maskedFastRequests: {
    value: 100,
    unit: 'requests',
    meaning: 'how many there must be within the hour',
    reason: '14.4 % of them are 14, no chance hit',
  },
  maskedSlowBurn: {
    value: 3,
    unit: 'times',
    meaning: 'how much faster than that, over a day and over 2 hours',
    reason: '10 % of the budget is gone within a day',
  },
  maskedSlowRequests: {
    value: 1000,
    unit: 'requests',
    meaning: 'how many there must be within the day',
    reason: '3 % of them are 30, no chance hit',
  },
  requests: {
    value: 50,
    unit: 'requests',
    meaning: 'how many there must be within 5 minutes, for the alerts that look at so many minutes',
    reason: 'with fewer, one request more or less moves a rate by over 2 %',
  },
  firstTryGap: {
    value: 0.25,
    unit: 'share',
    meaning: 'first-try success below effective success',
    reason:
      'each fourth request lives off a retry: one more fault, or a retry budget that runs dry, and clients see it',
  },
  exhausted: {
    value: 0.05,
    unit: 'share',
    meaning: 'requests that failed although they were tried again',
    reason: 'below 5 % an alert of your own on errors is the better one; above it retries only add load',
  },
  aborted: {
    value: 0.2,
    unit: 'share',
    meaning: 'requests whose caller left first',
    reason: 'people leave a few per cent; callers whose own timeout is too short for a slow service leave most',
  },
  amplification: {
    value: 1.5,
    unit: 'attempts per request',
    meaning: 'attempts per request that had one',
    reason: 'three layers that each do this send 3.4 for one',
  },
  staleHttp: {
    value: 300,
    unit: 's',
    meaning: 'how long HTTP may go over stale pins',
    reason: 'a pool that drains does so with its next requests; after 5 minutes it is kept',
  },
  staleTcp: {
    value: 900,
    unit: 's',
    meaning: 'how long TCP connections may be stale pins',
    reason: 'nothing moves a TCP session but its end; many sessions end by themselves within 15 minutes',
  },
  staleBytes: {
    value: 1024,
    unit: 'bytes per second',
    meaning: 'what flows to an endpoint that left, over 5 minutes',
    reason: 'keep-alives and probes stay below 1 KiB/s; more is work that is lost when the old site is shut down',
  },
  drain: {
    value: 3600,
    unit: 's',
    meaning: 'how long an endpoint that left may be connected',
    reason: 'an hour is the idle timeout that Envoy has by default: what is there after it is used, or never closed',
  },
  discoveryAge: {
    value: 300,
    unit: 's',
    meaning: 'since the last good answer of a source',
    reason: 'sources answer every 20 s or faster, and judge nothing after a minute without: 5 minutes are no hiccup',
  },
  coverageLost: {
    value: 0.5,
    unit: 'share',
    meaning: 'proxies that reported an hour ago and do not now',
    reason: 'scaling down takes a part of them; half of all at once is a fault, or a filter that was taken off',
  },
  evidence: {
    value: 20,
    unit: 'requests',
    meaning: 'per listed endpoint of the cluster, within 5 minutes',
    reason: 'chance alone leaves out an endpoint once in 500 million times',
  },
  connections: {
    value: 2,
    unit: 'times',
    meaning: 'as many TCP connections as listed endpoints',
    reason: 'with fewer, an endpoint without one is no surprise',
  },
  incomplete: {
    value: 0.01,
    unit: 'share',
    meaning: 'exchanges whose facts are not whole',
    reason: 'log streams end and begin anew all day and may cost a few entries; 1 % bends the rates',
  },
} as const satisfies Record<string, Parameter>;

export type ParameterName = keyof typeof parameters;

/** The value of every threshold, in its unit. */
export type Thresholds = Record<ParameterName, number>;

export const parameterNames = Object.keys(parameters) as ParameterName[];

/** The defaults, but for what is given. */
export function thresholds(given: Partial<Thresholds> = {}): Thresholds {
  const defaults = Object.fromEntries(parameterNames.map((name) => [name, parameters[name].value])) as Thresholds;
  return { ...defaults, ...given };
}
