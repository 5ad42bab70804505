import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
// The reflection that @grpc/proto-loader itself builds on: its package definitions leave nested messages out.
import { addCommonProtos, loadProtosWithOptionsSync } from '@grpc/proto-loader/build/src/util.js';
import { expect, test } from 'vitest';

type Node = ReturnType<typeof loadProtosWithOptionsSync>['nestedArray'][number];
type Type = ReturnType<ReturnType<typeof loadProtosWithOptionsSync>['lookupType']>;
type Enum = ReturnType<ReturnType<typeof loadProtosWithOptionsSync>['lookupEnum']>;
type Service = ReturnType<ReturnType<typeof loadProtosWithOptionsSync>['lookupService']>;

addCommonProtos();
const files = readdirSync(new URL('../../proto', import.meta.url), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.proto'))
  .toSorted();
const deps = '../../node_modules/@grpc/grpc-js-xds/deps';
const ours = definitionsOf(files, ['../../proto']);
const full = definitionsOf(
  files.filter((file) => file.startsWith('envoy/')),
  [`${deps}/envoy-api`, `${deps}/xds`, `${deps}/googleapis`, `${deps}/protoc-gen-validate`],
);

/**
 * What the definitions in @grpc/grpc-js-xds (an older snapshot) lack. Source: the descriptors inside the Envoy 1.40.0
 * binary; for health, grpc/health/v1/health.proto of the gRPC project.
 */
const newer: Record<string, string[]> = {
  'envoy.extensions.filters.http.ext_proc.v3.ProcessingMode.BodySendMode': ['FULL_DUPLEX_STREAMED = 4', 'GRPC = 5'],
  'envoy.service.ext_proc.v3.ProcessingRequest': [
    'optional envoy.service.ext_proc.v3.ProtocolConfiguration protocol_config = 11',
  ],
  'envoy.service.ext_proc.v3.ProtocolConfiguration': [
    'optional envoy.extensions.filters.http.ext_proc.v3.ProcessingMode.BodySendMode request_body_mode = 1',
    'optional envoy.extensions.filters.http.ext_proc.v3.ProcessingMode.BodySendMode response_body_mode = 2',
  ],
  'envoy.service.ext_proc.v3.HttpBody': [
    'optional bool end_of_stream_without_message = 3',
    'optional bool grpc_message_compressed = 4',
  ],
  'envoy.service.ext_proc.v3.BodyMutation': [
    'optional envoy.service.ext_proc.v3.StreamedBodyResponse streamed_response = 3 in mutation',
  ],
  'envoy.service.ext_proc.v3.StreamedBodyResponse': [
    'optional bytes body = 1',
    'optional bool end_of_stream = 2',
    'optional bool end_of_stream_without_message = 3',
    'optional bool grpc_message_compressed = 4',
  ],
  'grpc.health.v1.HealthCheckRequest': ['optional string service = 1'],
  'grpc.health.v1.HealthCheckResponse': ['optional grpc.health.v1.HealthCheckResponse.ServingStatus status = 1'],
  'grpc.health.v1.HealthCheckResponse.ServingStatus': [
    'UNKNOWN = 0',
    'SERVING = 1',
    'NOT_SERVING = 2',
    'SERVICE_UNKNOWN = 3',
  ],
  'grpc.health.v1.Health': [
    'Check (grpc.health.v1.HealthCheckRequest) returns (grpc.health.v1.HealthCheckResponse)',
    'Watch (grpc.health.v1.HealthCheckRequest) returns (stream grpc.health.v1.HealthCheckResponse)',
  ],
};

test('every file of proto/ is read, with the nested messages in it', () => {
  expect(files).toHaveLength(8);
  expect([...ours.keys()]).toEqual(
    expect.arrayContaining([
      'envoy.data.accesslog.v3.ResponseFlags.Unauthorized',
      'envoy.service.accesslog.v3.StreamAccessLogsMessage.Identifier',
      'envoy.config.core.v3.HeaderValueOption.HeaderAppendAction',
      'grpc.health.v1.Health',
    ]),
  );
});

test.each([...ours.keys()])('%s is a part of what Envoy defines', (name) => {
  const known = [...(full.get(name) ?? []), ...(newer[name] ?? [])];
  expect(full.has(name) || name in newer).toBe(true);
  expect((ours.get(name) ?? []).filter((line) => !known.includes(line))).toEqual([]);
});

test.each(Object.entries(newer))('the older snapshot does lack what is literal here of %s', (name, lines) => {
  expect(lines.filter((line) => full.get(name)?.includes(line))).toEqual([]);
});

/** Every message, enum and service of these files by its full name: a line per field, value or method. */
function definitionsOf(protos: string[], folders: string[]): Map<string, string[]> {
  const includeDirs = folders.map((folder) => fileURLToPath(new URL(folder, import.meta.url)));
  const root = loadProtosWithOptionsSync(protos, { keepCase: true, includeDirs });
  root.resolveAll();
  const lines = new Map<string, string[]>();
  visit(root.nestedArray, lines);
  return lines;
}

function visit(nodes: Node[], lines: Map<string, string[]>): void {
  for (const node of nodes) {
    const own = linesOf(node);
    if (own !== undefined && !node.fullName.startsWith('.google.')) lines.set(node.fullName.slice(1), own);
    if ('nestedArray' in node) visit(node.nestedArray as Node[], lines);
  }
}

function linesOf(node: Node): string[] | undefined {
  if ('fieldsArray' in node) return (node as Type).fieldsArray.map(fieldLine);
  if ('values' in node) return Object.entries((node as Enum).values).map(([name, value]) => `${name} = ${value}`);
  if ('methodsArray' in node) return (node as Service).methodsArray.map(methodLine);
  return undefined;
}

function fieldLine(field: Type['fieldsArray'][number]): string {
  const type = field.resolvedType?.fullName.slice(1) ?? field.type;
  const label = field.repeated ? 'repeated' : 'optional';
  const shown = 'keyType' in field ? `map<${String(field.keyType)}, ${type}>` : `${label} ${type}`;
  const oneof = field.partOf === null ? '' : ` in ${field.partOf.name}`;
  return `${shown} ${field.name} = ${field.id}${oneof}`;
}

function methodLine(method: Service['methodsArray'][number]): string {
  const side = (stream: boolean | undefined, type: Type | null): string =>
    `(${stream === true ? 'stream ' : ''}${type?.fullName.slice(1)})`;
  const request = side(method.requestStream, method.resolvedRequestType);
  return `${method.name} ${request} returns ${side(method.responseStream, method.resolvedResponseType)}`;
}
