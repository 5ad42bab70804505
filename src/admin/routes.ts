import { parseHostPort } from '../lib/host-port.ts';
import { canonicalIp } from '../lib/ip.ts';
import { type Outcome, outcomes } from '../model/verdict.ts';
import { type Answer, type EventStream, json, problem } from './answer.ts';
import { type PagePart, pageParts, type Viewers } from './viewers.ts';

/** Whether Sidelight can serve, and what is missing if not. */
export interface Readiness {
  ready: boolean;
  reasons: readonly string[];
}

/** What the port asks for. Results must be plain JSON; one that throws costs that request only. */
export interface AdminSources {
  ready: () => Readiness;
  metrics: () => { body: Iterable<string>; contentType: string };
  exchanges: (query: ExchangesQuery) => unknown;
  pins: () => unknown;
  endpoints: (query: EndpointsQuery) => unknown;
  clusters: () => unknown;
  reporters: () => unknown;
  /** `undefined`: it is switched off. */
  page: PageSources | undefined;
}

/** What the live page is made of. */
export interface PageSources {
  /** By path, `/` among them. */
  files: ReadonlyMap<string, Answer>;
  viewers: Viewers;
  /** The last minutes of these clusters; `''` is the one without a name. */
  history: (clusters: ReadonlySet<string>) => unknown;
}

/** Which exchanges are asked for; all of what is given must fit. */
export interface ExchangesQuery {
  outcome: Outcome | undefined;
  /** A trace id, 32 hex digits in lower case. */
  trace: string | undefined;
  limit: number;
}

/** Which endpoints are asked for; all of what is given must fit. */
export interface EndpointsQuery {
  cluster: string | undefined;
  /** The name, file or address that the cluster's source asked. */
  host: string | undefined;
  /** Canonical IP; without a port, any. */
  endpoint: { ip: string; port: number | undefined } | undefined;
}

type Route = (sources: AdminSources, query: URLSearchParams, method: 'GET' | 'HEAD') => Answer | EventStream;

const defaultLimit = 50;
const longestList = 500;

/** Every path of the port. */
export const routes: ReadonlyMap<string, Route> = new Map<string, Route>([
  ['/healthz', () => json(200, { status: 'ok' })],
  ['/readyz', (sources) => readiness(sources.ready())],
  ['/metrics', (sources) => ({ status: 200, ...sources.metrics() })],
  ['/api/v1/exchanges', (sources, query) => exchanges(sources, query)],
  ['/api/v1/pins', (sources) => json(200, sources.pins())],
  ['/api/v1/endpoints', (sources, query) => endpoints(sources, query)],
  ['/api/v1/clusters', (sources) => json(200, sources.clusters())],
  ['/api/v1/reporters', (sources) => json(200, sources.reporters())],
  ['/api/v1/history', ({ page }, query) => (page === undefined ? switchedOff() : history(page, query))],
  [
    '/api/v1/events',
    ({ page }, query, method) => (page === undefined ? switchedOff() : events(page.viewers, query, method)),
  ],
]);

function readiness({ ready, reasons }: Readiness): Answer {
  return json(ready ? 200 : 503, { ready, reasons });
}

function exchanges(sources: AdminSources, query: URLSearchParams): Answer {
  const outcome = query.get('outcome');
  const known = outcomes.find((one) => one === outcome);
  if (outcome !== null && known === undefined)
    return problem(400, 'bad_query', `outcome must be one of: ${outcomes.join(', ')}`);
  const limit = query.get('limit') ?? String(defaultLimit);
  const number = /^\d{1,9}$/.test(limit) ? Number(limit) : 0;
  if (number < 1 || number > longestList)
    return problem(400, 'bad_query', `limit must be a whole number from 1 to ${longestList}`);
  const trace = query.get('trace')?.toLowerCase();
  if (trace !== undefined && !/^[\da-f]{32}$/.test(trace))
    return problem(400, 'bad_query', 'trace must be a trace id of 32 hex digits');
  return json(200, sources.exchanges({ outcome: known, trace, limit: number }));
}

function endpoints(sources: AdminSources, query: URLSearchParams): Answer {
  const text = query.get('endpoint') ?? undefined;
  const endpoint = text === undefined ? undefined : parseEndpoint(text);
  if (text !== undefined && endpoint === undefined)
    return problem(400, 'bad_query', 'endpoint must be IP, IP:port or [v6]:port');
  const cluster = query.get('cluster') ?? undefined;
  const host = query.get('host')?.toLowerCase();
  return json(200, sources.endpoints({ cluster, host, endpoint }));
}

function switchedOff(): Answer {
  return problem(404, 'page_off', 'The page and what it asks are switched off: page.enabled is false.');
}

const mostHistories = 100;

function history(page: PageSources, query: URLSearchParams): Answer {
  const clusters = query.getAll('cluster');
  if (clusters.length === 0 || clusters.length > mostHistories)
    return problem(400, 'bad_query', `cluster must be there 1 to ${mostHistories} times`);
  return json(200, page.history(new Set(clusters)));
}

function events(viewers: Viewers, query: URLSearchParams, method: 'GET' | 'HEAD'): Answer | EventStream {
  const asked = query.get('parts')?.split(',') ?? pageParts;
  const parts = asked.map((name) => pageParts.find((part) => part === name));
  if (parts.includes(undefined)) return problem(400, 'bad_query', `parts must be of: ${pageParts.join(', ')}`);
  if (method === 'HEAD') return { status: 200, contentType: 'text/event-stream; charset=utf-8', body: '' };
  if (viewers.isFull) return problem(503, 'too_many_viewers', 'Close another page first.', { 'retry-after': '10' });
  const known = parts.filter((part): part is PagePart => part !== undefined);
  return { open: (response) => viewers.open(response, [...new Set(known)]) };
}

function parseEndpoint(text: string): EndpointsQuery['endpoint'] {
  const bare = canonicalIp(text);
  if (bare !== undefined) return { ip: bare, port: undefined };
  const { host = '', port } = parseHostPort(text) ?? {};
  const ip = canonicalIp(host);
  return ip === undefined ? undefined : { ip, port };
}
