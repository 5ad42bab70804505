import {
  loadSync,
  type MessageTypeDefinition,
  type PackageDefinition,
  type ServiceDefinition,
} from '@grpc/proto-loader';
import { SidelightError } from '../lib/errors.ts';
import type { WireLogMessage, WireProcessingRequest, WireProcessingResponse } from './wire-types.ts';

// The same relative path from src/decode and, in the installed package, from dist/decode.
const protoFolder = `${import.meta.dirname}/../../proto`;

function load(): PackageDefinition {
  try {
    return loadSync(
      [
        'envoy/service/accesslog/v3/als.proto',
        'envoy/service/ext_proc/v3/external_processor.proto',
        'grpc/health/v1/health.proto',
      ],
      { includeDirs: [protoFolder], longs: Number, oneofs: true },
    );
  } catch (cause) {
    throw new SidelightError('proto_unreadable', { path: protoFolder, cause });
  }
}

const definitions = load();

function message<Written, Read>(name: string): MessageTypeDefinition<Written, Read> {
  return definitions[name] as unknown as MessageTypeDefinition<Written, Read>;
}

function service(name: string): ServiceDefinition {
  return definitions[name] as ServiceDefinition;
}

/** The messages of the two Envoy APIs. `deserialize` throws on bytes that are no such message. */
export const wire = {
  logMessage: message<WireLogMessage, WireLogMessage>('envoy.service.accesslog.v3.StreamAccessLogsMessage'),
  processingRequest: message<WireProcessingRequest, WireProcessingRequest>(
    'envoy.service.ext_proc.v3.ProcessingRequest',
  ),
  processingResponse: message<WireProcessingResponse, WireProcessingResponse>(
    'envoy.service.ext_proc.v3.ProcessingResponse',
  ),
};

/** The services as proto/ defines them: their method paths are what Envoy calls. */
export const wireServices = {
  accessLog: service('envoy.service.accesslog.v3.AccessLogService'),
  externalProcessor: service('envoy.service.ext_proc.v3.ExternalProcessor'),
  health: service('grpc.health.v1.Health'),
};
