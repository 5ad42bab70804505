import { readFileSync } from 'node:fs';
import { type Document, type Pair, parseDocument, visit, type YAMLMap } from 'yaml';
import { memo } from '../lib/memo.ts';
import { type Profile, profiles } from '../model/reporter.ts';
import { childMap, childSeq, mapOf, pairOf } from './nodes.ts';

/**
 * What makes an Envoy report to Sidelight: nodes of YAML with their comments, to be put into another document. A pair is
 * one key of the config of a filter.
 */
export interface Parts {
  /** Of the HTTP connection manager: sets the key. */
  earlyHeaderMutation: Pair;
  /** Before the router, in this order; none in profile `observe`. */
  filters: YAMLMap[];
  /** Absent in profile `tag`. */
  logs: LogParts | undefined;
  /** How Sidelight is reached. */
  cluster: YAMLMap;
}

/** The first of them that a document has holds the block that all must have alike, as an anchor. */
export interface LogParts {
  /** Of the HTTP connection manager: one entry per request. */
  request: Pair;
  /** Of the router: one entry per attempt, and of a long one while it lives. */
  attempt: Pair;
  attemptOptions: Pair;
  /** Of the TCP proxy: one entry when it is connected, every few seconds, and at its end. */
  connection: Pair;
  connectionOptions: Pair;
}

/** How the parts call Sidelight. */
export interface Reached {
  cluster: string;
  /** Of the gRPC calls. Absent: Envoy takes the cluster's name. */
  authority: string | undefined;
}

/** The parts of a profile as `envoy/` ships them, which is what the tests run. A new copy at each call. */
export function shippedParts(profile: Profile, reached: Reached): Parts {
  const config = shippedConfig(profile, reached);
  const manager = filterConfig(config, 0);
  const filters = childSeq(manager, 'http_filters').items.map(mapOf);
  return {
    earlyHeaderMutation: pairOf(manager, 'early_header_mutation_extensions'),
    filters: filters.slice(0, -1),
    logs: profile === 'tag' ? undefined : logParts(manager, mapOf(filters.at(-1)), reached),
    cluster: mapOf(childSeq(mapOf(config.contents), 'static_resources', 'clusters').items.at(-1)),
  };
}

function logParts(manager: YAMLMap, router: YAMLMap, reached: Reached): LogParts {
  const attempts = childMap(router, 'typed_config');
  // Only this file has a TCP listener. Its log names the block of the others and is alike in each profile.
  const tcpProxy = filterConfig(shippedConfig('observe', reached), 1);
  return {
    request: pairOf(manager, 'access_log'),
    attempt: pairOf(attempts, 'upstream_log'),
    attemptOptions: pairOf(attempts, 'upstream_log_options'),
    connection: pairOf(tcpProxy, 'access_log'),
    connectionOptions: pairOf(tcpProxy, 'access_log_options'),
  };
}

/** Read once: a config with many listeners takes a copy for each. */
const shippedFile = memo(
  (profile) => parseDocument(readFileSync(new URL(`../../envoy/${profile}.yaml`, import.meta.url), 'utf8')),
  profiles.length,
);

function shippedConfig(profile: Profile, { cluster, authority }: Reached): Document {
  const config = shippedFile(profile).clone();
  visit(config, {
    Node: (_, node) => {
      node.commentBefore = withoutNumbers(node.commentBefore);
      node.spaceBefore = false;
    },
    Pair: (_, { key, value }) => {
      if (String(key) !== 'envoy_grpc') return;
      mapOf(value).set('cluster_name', cluster);
      if (authority !== undefined) mapOf(value).set('authority', authority);
    },
  });
  return config;
}

const number = /^ \[\d\] /;
const otherNumber = /\[\d\]/;

/** The file numbers its parts, and one remark speaks of the numbers. */
function withoutNumbers(comment: string | null | undefined): string | null {
  const text = comment?.replace(number, ' ');
  return text === undefined || otherNumber.test(text) ? null : text;
}

function filterConfig(config: Document, listener: number): YAMLMap {
  const path = ['static_resources', 'listeners', listener, 'filter_chains', 0, 'filters', 0, 'typed_config'];
  return mapOf(config.getIn(path, true));
}
