import { savedSubjects } from '../../discovery/saved.ts';
import { StateFile } from '../../state/state-file.ts';
import type { Rooms, SidelightOptions } from './build-rooms.ts';
import { restorePins, savedPinsSchema, savePins } from './saved-pins.ts';

/** What outlives this run: the view and the pins. */
export interface State {
  restored: Awaited<ReturnType<ReturnType<typeof stateFile>['read']>>;
  /** Something changed: it is written soon. */
  touch(): void;
  /** Gives back the pins of the earlier run; from now on what is to be kept comes from these rooms. */
  attach(rooms: Rooms): void;
  stop(): Promise<void>;
}

/** Opens the state file, if there is to be one. What it cannot give is told in the log, and missed by nobody else. */
export async function openState({ config, logger, now }: SidelightOptions): Promise<State | undefined> {
  const path = config.discovery.stateFile;
  if (path === undefined) return undefined;
  let rooms: Rooms | undefined;
  const file = stateFile(path, { now, onError: (error) => logger.warn('state.failed', { error }) }, () => rooms);
  const restored = await file.read();
  if (restored !== undefined) {
    const { savedAtMs, discovery, pins } = restored;
    logger.info('state.restored', { path, savedAtMs, subjects: discovery.length, connections: pins.length });
  }
  return {
    restored,
    touch: () => file.touch(),
    attach(attached) {
      rooms = attached;
      const { discovery, recorder } = attached;
      restorePins(recorder, restored?.pins ?? [], (cluster, nodeId) => discovery.watch(cluster, nodeId));
    },
    stop: () => (rooms === undefined ? Promise.resolve() : file.stop()),
  };
}

function stateFile(
  path: string,
  edges: { now: () => number; onError: (error: Error) => void },
  rooms: () => Rooms | undefined,
) {
  return new StateFile({
    path,
    schemas: { discovery: savedSubjects, pins: savedPinsSchema },
    collect() {
      const from = rooms();
      return from === undefined
        ? { discovery: [], pins: [] }
        : { discovery: from.discovery.state(), pins: savePins(from.recorder) };
    },
    ...edges,
  });
}
