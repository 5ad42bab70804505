import { type Client, credentials, Metadata, makeGenericClientConstructor } from '@grpc/grpc-js';
import { reference } from './wire.ts';

const raw = (bytes: Buffer): Buffer => bytes;

/** An Envoy of the test's own making: it writes what it likes, in Envoy's own messages or in none. */
export interface LogClient {
  /** Opens a log stream whose first message names the node. */
  stream(): LogStream;
  /** Opens an ext_proc stream and sends these bytes; resolves to the status that ends it. */
  process(bytes: Buffer): Promise<number>;
  close(): void;
}

interface LogStream {
  entries(entries: readonly object[], layer?: 'http' | 'tcp'): void;
  bytes(bytes: Buffer): void;
  end(): void;
  /** The gRPC status that ends it. */
  status: Promise<number>;
}

export function logClient(port: number, nodeName: string): LogClient {
  const Constructor = makeGenericClientConstructor({}, 'any');
  const client: Client = new Constructor(`127.0.0.1:${port}`, credentials.createInsecure());
  const identifier = { node: { id: nodeName, cluster: nodeName }, log_name: 'sidelight.observe' };
  return {
    stream() {
      const ended = Promise.withResolvers<number>();
      const path = reference.accessLog['StreamAccessLogs']?.path ?? '';
      const call = client.makeClientStreamRequest(path, raw, raw, (error) => ended.resolve(error?.code ?? 0));
      call.on('error', () => undefined);
      call.write(reference.logMessage.serialize({ identifier }));
      return {
        entries: (log_entry, layer = 'http') =>
          void call.write(reference.logMessage.serialize({ [`${layer}_logs`]: { log_entry } })),
        bytes: (bytes) => void call.write(bytes),
        end: () => call.end(),
        status: ended.promise,
      };
    },
    process(bytes) {
      const ended = Promise.withResolvers<number>();
      const metadata = new Metadata();
      metadata.set('x-sidelight-profile', 'full');
      const path = reference.externalProcessor['Process']?.path ?? '';
      const call = client.makeBidiStreamRequest(path, raw, raw, metadata);
      call.on('data', () => undefined);
      call.on('error', () => undefined);
      call.on('status', ({ code }) => ended.resolve(code));
      call.write(bytes);
      return ended.promise;
    },
    close: () => client.close(),
  };
}

/** A protobuf time of epoch ms. */
function wireTime(ms: number): { seconds: number; nanos: number } {
  const seconds = Math.floor(ms / 1000);
  return { seconds, nanos: Math.round((ms - seconds * 1000) * 1e6) };
}

function wireAddress(ip: string, port: number): object {
  return { socket_address: { address: ip, port_value: port } };
}

interface Request {
  key: string;
  cluster: string;
  startMs: number;
  durationMs?: number;
  ip?: string;
  connectionId?: string;
  ageMs?: number;
  /** 200 by default. */
  status?: number;
}

/** The two entries of a request that an upstream answered, as Envoy writes them. */
export function answered({
  key,
  cluster,
  startMs,
  durationMs = 5,
  ip = '127.0.0.11',
  connectionId = '7',
  ageMs = 1000,
  status = 200,
}: Request) {
  const common = {
    start_time: wireTime(startMs),
    duration: wireTime(durationMs),
    time_to_first_upstream_tx_byte: wireTime(0),
    upstream_cluster: cluster,
    upstream_remote_address: wireAddress(ip, 8080),
    downstream_remote_address: wireAddress('127.0.0.1', 50_000),
    custom_tags: { key, cluster, connection_id: connectionId, connection_age_us: String(ageMs * 1000) },
  };
  const response = { response_code: { value: status } };
  return [
    { common_properties: { ...common, access_log_type: 'UpstreamEnd' }, response },
    {
      common_properties: { ...common, access_log_type: 'DownstreamEnd', upstream_request_attempt_count: 1 },
      response: { ...response, response_code_details: 'via_upstream' },
    },
  ];
}
