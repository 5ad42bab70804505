import type { Admin } from '../../admin/server.ts';
import { buildRooms, type Rooms, type SidelightOptions } from './build-rooms.ts';
import { openAdmin } from './open-admin.ts';
import { openState, type State } from './state.ts';

/** A running service. */
export interface Sidelight {
  grpcPort: number;
  httpPort: number;
  /** Where spans are sent, for a start-up line. */
  spansTo: string;
  /** Stops in order: no new streams, what is open judged, telemetry flushed. Takes `shutdownMs` at most. */
  close(): Promise<void>;
}

/** Builds every room, joins them, and listens. Rejects with `listen_failed`. */
export async function startSidelight(options: SidelightOptions): Promise<Sidelight> {
  const { config } = options;
  const kept = await openState(options);
  const rooms = buildRooms(options, {
    restored: kept?.restored?.discovery ?? [],
    touch: () => kept?.touch(),
  });
  const state = { serving: false };
  let admin: Admin | undefined;
  try {
    await rooms.discovery.start();
    rooms.expected?.start();
    kept?.attach(rooms);
    admin = await openAdmin(rooms, options.version, state);
    const grpcPort = await rooms.ingress.bind(config.listen.grpc);
    state.serving = true;
    rooms.ingress.setServing(true);
    return {
      grpcPort,
      httpPort: admin.port,
      spansTo: rooms.emit.settings.traces?.url ?? 'nowhere',
      close: () => {
        state.serving = false;
        return stop(rooms, admin, kept, config.shutdownMs);
      },
    };
  } catch (error) {
    await stop(rooms, admin, kept, 0);
    throw error;
  }
}

async function stop(rooms: Rooms, admin: Admin | undefined, kept: State | undefined, withinMs: number): Promise<void> {
  const { ingress, recorder, discovery, expected, emit, lag, pageLag, beats } = rooms;
  await ingress.drain(withinMs / 2);
  for (const beat of beats) clearInterval(beat);
  recorder.flush();
  await kept?.stop();
  discovery.stop();
  expected?.stop();
  await Promise.all([emit.shutdown(withinMs / 2), admin?.close(withinMs / 2)]);
  lag.stop();
  pageLag?.stop();
}
