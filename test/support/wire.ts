import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { loadSync, type MessageTypeDefinition, type ServiceDefinition } from '@grpc/proto-loader';
import type { DecodeLimits } from '../../src/decode/limits.ts';

const deps = new URL('deps/', import.meta.resolve('@grpc/grpc-js-xds/package.json'));
const includeDirs = ['envoy-api', 'xds', 'googleapis', 'protoc-gen-validate'].map((folder) =>
  fileURLToPath(new URL(folder, deps)),
);
const definitions = loadSync(
  ['envoy/service/accesslog/v3/als.proto', 'envoy/service/ext_proc/v3/external_processor.proto'],
  {
    keepCase: true,
    longs: Number,
    enums: String,
    includeDirs,
  },
);

// biome-ignore lint/suspicious/noExplicitAny: a test writes any message that Envoy may send.
type Message = any; // oxlint-disable-line typescript/no-explicit-any

/** Envoy's whole API as @grpc/grpc-js-xds ships it: the reference that our own subset is compared with. */
export const reference = {
  logMessage: definitions['envoy.service.accesslog.v3.StreamAccessLogsMessage'] as unknown as MessageTypeDefinition<
    Message,
    Message
  >,
  processingRequest: definitions['envoy.service.ext_proc.v3.ProcessingRequest'] as unknown as MessageTypeDefinition<
    Message,
    Message
  >,
  processingResponse: definitions['envoy.service.ext_proc.v3.ProcessingResponse'] as unknown as MessageTypeDefinition<
    Message,
    Message
  >,
  accessLog: definitions['envoy.service.accesslog.v3.AccessLogService'] as ServiceDefinition,
  externalProcessor: definitions['envoy.service.ext_proc.v3.ExternalProcessor'] as ServiceDefinition,
};

/** Bytes of one recorded message, see test/fixtures/wire/README.md. */
export function recorded(name: string): Buffer {
  return readFileSync(new URL(`../fixtures/wire/envoy-1.40/${name}.bin`, import.meta.url));
}

export const limits: DecodeLimits = { messageBytes: 1 << 20, tagsPerEntry: 64, headerBytes: 16_384, textBytes: 256 };

/** A Struct of plain values, as it goes over the wire. */
export function struct(values: Record<string, string | number | boolean>): object {
  const fields = Object.entries(values).map(([name, value]) => {
    if (typeof value === 'string') return [name, { stringValue: value }];
    return [name, typeof value === 'number' ? { numberValue: value } : { boolValue: value }];
  });
  return { fields: Object.fromEntries(fields) };
}
