/**
 * What @grpc/proto-loader makes of the messages in proto/ with the options of `wire.ts`: absent fields are `undefined`,
 * enums and 64-bit numbers are numbers. One interface per message, same names.
 */
export interface WireStruct {
  fields?: Record<string, WireValue>;
}

export interface WireValue {
  numberValue?: number;
  stringValue?: string;
  boolValue?: boolean;
  structValue?: WireStruct;
}

/** Both of google.protobuf's Timestamp (since 1970) and Duration. */
export interface WireTime {
  seconds?: number;
  nanos?: number;
}

export interface WireAddress {
  socketAddress?: { address?: string; portValue?: number };
  pipe?: { path?: string };
  envoyInternalAddress?: { serverListenerName?: string; endpointId?: string };
}

export interface WireNode {
  id?: string;
  cluster?: string;
  metadata?: WireStruct;
  userAgentVersion?: string;
  userAgentBuildVersion?: { version?: { majorNumber?: number; minorNumber?: number; patch?: number } };
}

export interface WireCommon {
  downstreamRemoteAddress?: WireAddress;
  startTime?: WireTime;
  timeToFirstUpstreamTxByte?: WireTime;
  timeToLastUpstreamTxByte?: WireTime;
  timeToFirstUpstreamRxByte?: WireTime;
  timeToLastUpstreamRxByte?: WireTime;
  upstreamRemoteAddress?: WireAddress;
  upstreamCluster?: string;
  responseFlags?: Record<string, boolean | object>;
  metadata?: { filterMetadata?: Record<string, WireStruct> };
  upstreamTransportFailureReason?: string;
  routeName?: string;
  downstreamDirectRemoteAddress?: WireAddress;
  customTags?: Record<string, string>;
  duration?: WireTime;
  upstreamRequestAttemptCount?: number;
  streamId?: string;
  accessLogType?: number;
}

export interface WireHttpEntry {
  commonProperties?: WireCommon;
  protocolVersion?: number;
  request?: {
    requestMethod?: number;
    scheme?: string;
    authority?: string;
    path?: string;
    requestId?: string;
    requestBodyBytes?: number;
  };
  response?: { responseCode?: { value?: number }; responseBodyBytes?: number; responseCodeDetails?: string };
}

export interface WireTcpEntry {
  commonProperties?: WireCommon;
  connectionProperties?: { receivedBytes?: number; sentBytes?: number };
}

export interface WireLogMessage {
  identifier?: { node?: WireNode; logName?: string };
  httpLogs?: { logEntry?: WireHttpEntry[] };
  tcpLogs?: { logEntry?: WireTcpEntry[] };
}

export interface WireHeader {
  key?: string;
  value?: string;
  rawValue?: Uint8Array;
}

/** A piece of a body, both as it comes and as it is given back. */
export interface WireBody {
  body?: Uint8Array;
  endOfStream?: boolean;
  endOfStreamWithoutMessage?: boolean;
  grpcMessageCompressed?: boolean;
}

export interface WireProcessingRequest {
  /** Which member of the oneof is set. */
  request?: string;
  requestHeaders?: { headers?: { headers?: WireHeader[] } };
  responseHeaders?: { headers?: { headers?: WireHeader[] } };
  requestBody?: WireBody;
  responseBody?: WireBody;
  attributes?: Record<string, WireStruct>;
  observabilityMode?: boolean;
  protocolConfig?: { requestBodyMode?: number; responseBodyMode?: number };
}

interface WireHeadersAnswer {
  response?: { headerMutation?: { setHeaders: { header: WireHeader; appendAction: number }[] } };
}

interface WireBodyAnswer {
  response?: { bodyMutation: { streamedResponse: WireBody } };
}

export interface WireProcessingResponse {
  requestHeaders?: WireHeadersAnswer;
  responseHeaders?: WireHeadersAnswer;
  requestBody?: WireBodyAnswer;
  responseBody?: WireBodyAnswer;
  requestTrailers?: object;
  responseTrailers?: object;
  dynamicMetadata?: WireStruct;
}
