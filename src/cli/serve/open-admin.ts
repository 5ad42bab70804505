import { type Admin, startAdmin } from '../../admin/server.ts';
import { parseHostPort } from '../../lib/host-port.ts';
import { clustersView, pinsView, reportersView } from './api-views.ts';
import { reportEndpoints, windowMs } from './books.ts';
import { type Rooms, reporterQuietMs } from './build-rooms.ts';

/** Rows of one answer about endpoints. */
const maxEndpointRows = 1000;

/** Listens for HTTP. Rejects with `listen_failed`. */
export async function openAdmin(
  { ground, discovery, emit, recorder, coverage, expected, books, startedMs, heedClock }: Rooms,
  state: { serving: boolean },
): Promise<Admin> {
  const { config, logger, now, rules } = ground;
  const { host, port } = parseHostPort(config.listen.http) ?? { host: '127.0.0.1', port: 0 };
  return startAdmin({
    host,
    port,
    sources: {
      ready: () => ({ ready: state.serving, reasons: state.serving ? [] : ['not serving: starting or shutting down'] }),
      metrics: () => emit.scrape(),
      exchanges: (query) => ({ nowMs: now(), exchanges: emit.recent(query) }),
      pins: () => pinsView(recorder.board(), books.lives.cleared(), { view: discovery.snapshot(), nowMs: now() }),
      endpoints(query) {
        heedClock();
        const from = { recorder, view: discovery.snapshot(), coverage, rules, nowMs: now() };
        const endpoints = reportEndpoints(books, from, query);
        return {
          nowMs: from.nowMs,
          startedMs: startedMs(),
          windowMs,
          truncated: endpoints.length > maxEndpointRows,
          endpoints: endpoints.slice(0, maxEndpointRows),
        };
      },
      clusters: () => clustersView(discovery.snapshot(), (cluster) => books.flips.of(cluster), now()),
      reporters() {
        const nowMs = now();
        const list = expected?.list();
        const whoShould = list && { list, missing: coverage.missing(list.pods, nowMs, reporterQuietMs) };
        return reportersView(coverage.reporters(), whoShould, nowMs);
      },
    },
    onError: (error) => logger.error('http.failed', { error }),
  });
}
