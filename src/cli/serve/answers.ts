import type { EndpointQuery } from '../../endpoints/report.ts';
import type { EndpointsAnswer } from '../../model/endpoint-report.ts';
import { reportersView } from './api-views.ts';
import { reportEndpoints, windowMs } from './books.ts';
import { type Rooms, reporterQuietMs } from './build-rooms.ts';

/** Rows of one answer about endpoints. */
const maxEndpointRows = 1000;

/** `/api/v1/endpoints` */
export function endpointsAnswer(
  { ground, discovery, recorder, coverage, books, startedMs, heedClock }: Rooms,
  query: EndpointQuery,
): EndpointsAnswer {
  heedClock();
  const { rules, now } = ground;
  const from = { recorder, view: discovery.snapshot(), coverage, rules, nowMs: now() };
  const endpoints = reportEndpoints(books, from, query);
  return {
    nowMs: from.nowMs,
    startedMs: startedMs(),
    windowMs,
    truncated: endpoints.length > maxEndpointRows,
    endpoints: endpoints.slice(0, maxEndpointRows),
  };
}

/** `/api/v1/reporters` */
export function reportersAnswer({ ground, coverage, expected }: Rooms) {
  const nowMs = ground.now();
  const list = expected?.list();
  const whoShould = list && { list, missing: coverage.missing(list.pods, nowMs, reporterQuietMs) };
  return reportersView(coverage.reporters(), whoShould, nowMs);
}
