import { fileURLToPath } from 'node:url';
import { readPage } from '../../admin/page-files.ts';
import type { PageSources } from '../../admin/routes.ts';
import { type Admin, startAdmin } from '../../admin/server.ts';
import { Viewers } from '../../admin/viewers.ts';
import { parseHostPort } from '../../lib/host-port.ts';
import { endpointsAnswer, reportersAnswer } from './answers.ts';
import { clustersView, pinsView } from './api-views.ts';
import type { Rooms } from './build-rooms.ts';
import { pageParts } from './page/parts.ts';

/** Who may watch at once. */
const maxViewers = 64;
/** Time between two looks at what changed, for those who watch, ms. */
const pageTickMs = 1000;
const pageFolder = fileURLToPath(new URL('../../../page', import.meta.url));
/** What the page draws with: served as it is, so that no build step and no foreign host is needed. */
const pageLibraries = { 'preact.js': fileURLToPath(import.meta.resolve('preact')) };

/** Listens for HTTP. Rejects with `listen_failed`. */
export async function openAdmin(rooms: Rooms, version: string, state: { serving: boolean }): Promise<Admin> {
  const { ground, discovery, emit, recorder, books } = rooms;
  const { config, logger, now } = ground;
  const { host, port } = parseHostPort(config.listen.http) ?? { host: '127.0.0.1', port: 0 };
  const onError = (error: unknown) => logger.error('http.failed', { error });
  return startAdmin({
    host,
    port,
    sources: {
      ready: () => ({ ready: state.serving, reasons: state.serving ? [] : ['not serving: starting or shutting down'] }),
      metrics: () => emit.scrape(),
      exchanges: (query) => ({ nowMs: now(), exchanges: emit.recent(query) }),
      pins: () => pinsView(recorder.board(), books.lives.cleared(), { view: discovery.snapshot(), nowMs: now() }),
      endpoints: (query) => endpointsAnswer(rooms, query),
      clusters: () => clustersView(discovery.snapshot(), (cluster) => books.flips.of(cluster), now()),
      reporters: () => reportersAnswer(rooms),
      page: config.page.enabled ? openPage(rooms, version, onError) : undefined,
    },
    onError,
  });
}

function openPage(rooms: Rooms, version: string, onError: (error: unknown) => void): PageSources {
  const { emit, ground } = rooms;
  const { now } = ground;
  return {
    files: readPage(pageFolder, pageLibraries),
    viewers: new Viewers({ parts: pageParts(rooms, version), max: maxViewers, tickMs: pageTickMs, now, onError }),
    history: (clusters) => ({ nowMs: now(), clusters: emit.tally?.history(clusters, now()) ?? [] }),
  };
}
