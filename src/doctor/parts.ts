import { findTyped, isObject, type JsonObject, listAt, objectAt, objectsAt, textAt, typeOf } from './json.ts';

/** Our ext_proc filter, wherever in a filter it is. */
export interface ExtProcPart {
  /** Of the filter in the chain. */
  filterName: string;
  /** The filter in the chain: this one, or what wraps it. */
  filter: JsonObject;
  /** Its place among the chain's filters. */
  position: number;
  config: JsonObject;
  /** What `x-sidelight-profile` says; `''`: it is not there. */
  profile: string;
  cluster: string;
  authority: string;
}

/** An access log of ours: of requests, of attempts (the router's), or of TCP connections. */
export interface LogPart {
  kind: 'request' | 'attempt' | 'tcp';
  /** The logger, with its `filter`. */
  logger: JsonObject;
  common: JsonObject;
  logName: string;
  cluster: string;
  authority: string;
}

/** A filter that changes headers that are ours. */
export interface MutationPart {
  position: number;
  header: string;
  /** `APPEND_IF_EXISTS_OR_ADD` where the config says none: Envoy's default. */
  action: string;
}

const profileKey = 'x-sidelight-profile';
export const keyHeader = 'x-sidelight-key';
export const internalPrefix = 'x-sidelight-internal-';

/** Whether something that is called so, or sends to there, is ours although it does not say so. */
export type Suspicion = (names: { name: string; cluster: string }) => boolean;

/** The ext_proc filters of ours in a filter: bare, or behind a matcher that samples. */
export function extProcsOf(filter: JsonObject, position: number, isSuspect: Suspicion): ExtProcPart[] {
  const filterName = textAt(filter, 'name');
  return findTyped(filter['typed_config'], 'ExternalProcessor').flatMap((config) => {
    const said = objectsAt(config, 'grpc_service', 'initial_metadata').find(({ key }) => key === profileKey);
    const { cluster, authority } = calledBy(config);
    if (said === undefined && !isSuspect({ name: filterName, cluster })) return [];
    return [{ filterName, filter, position, config, profile: textAt(said, 'value'), cluster, authority }];
  });
}

/** Envoy's gRPC client calls by the cluster's name where it is told no authority. */
function calledBy(config: JsonObject): { cluster: string; authority: string } {
  const cluster = textAt(config, 'grpc_service', 'envoy_grpc', 'cluster_name');
  return { cluster, authority: textAt(config, 'grpc_service', 'envoy_grpc', 'authority') || cluster };
}

/** The gRPC loggers of ours among a list of loggers. */
export function logsOf(loggers: readonly JsonObject[], kind: LogPart['kind'], isSuspect: Suspicion): LogPart[] {
  return loggers.flatMap((logger) => {
    const type = typeOf(logger['typed_config']);
    if (type !== 'HttpGrpcAccessLogConfig' && type !== 'TcpGrpcAccessLogConfig') return [];
    const common = objectAt(logger, 'typed_config', 'common_config');
    const logName = textAt(common, 'log_name');
    const { cluster, authority } = calledBy(common);
    const isOurs = /^sidelight(\.|$)/.test(logName) || isSuspect({ name: textAt(logger, 'name'), cluster });
    return isOurs ? [{ kind, logger, common, logName, cluster, authority }] : [];
  });
}

/** Headers that a mutation sets or removes; Envoy's `HeaderMutation` has them in three lists, the early one in one. */
export function mutationsOf(
  config: JsonObject,
  position: number,
): { sets: MutationPart[]; requestSets: MutationPart[]; removes: MutationPart[] } {
  const { mutations } = config;
  const early = Array.isArray(mutations) ? mutations.filter(isObject) : [];
  const request = [...early, ...objectsAt(mutations, 'request_mutations')];
  const response = objectsAt(mutations, 'response_mutations');
  const sets = (list: readonly JsonObject[]) =>
    list.flatMap(({ append }) => {
      const header = textAt(append, 'header', 'key').toLowerCase();
      const action = textAt(append, 'append_action') || 'APPEND_IF_EXISTS_OR_ADD';
      return header === '' ? [] : [{ position, header, action }];
    });
  const removes = response.flatMap(({ remove }) =>
    typeof remove === 'string' ? [{ position, header: remove.toLowerCase(), action: 'remove' }] : [],
  );
  return { sets: sets(response), requestSets: sets(request), removes };
}

/** What a formatter reads of `x-sidelight-key`: the value of the tag that joins. */
export function isKeyTag(tag: JsonObject): boolean {
  return textAt(tag, 'tag') === 'key' && /^%REQ\(x-sidelight-key\)%$/i.test(textAt(tag, 'value'));
}

/** Names of the custom tags of a log. */
export function tagNames({ common }: LogPart): string[] {
  return listAt(common, 'custom_tags').map((tag) => textAt(tag, 'tag'));
}
