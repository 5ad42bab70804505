import { Server, ServerCredentials, type ServerDuplexStream, type sendUnaryData } from '@grpc/grpc-js';
import { wireServices } from '../../src/decode/wire.ts';

export interface SilentService {
  port: number;
  close(): void;
}

/** A service that says that it is healthy, takes every ext_proc stream, and never answers one. */
export async function startSilentService(): Promise<SilentService> {
  const server = new Server();
  server.addService(wireServices.health, {
    Check: (_: unknown, respond: sendUnaryData<object>) => respond(null, { status: 'SERVING' }),
  });
  server.addService(wireServices.externalProcessor, {
    Process: (call: ServerDuplexStream<object, object>) => void call.on('error', () => {}).resume(),
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port, close: () => server.forceShutdown() };
}
