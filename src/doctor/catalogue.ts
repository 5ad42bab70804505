/** error: data is lost or wrong, or traffic may be hurt. warning: something is blind, or dearer than need be. */
export const severities = ['error', 'warning', 'info'] as const;
export type Severity = (typeof severities)[number];

interface Entry {
  severity: Severity;
  /** One line; the title of its page. */
  title: string;
  /** What to do, where the place says no better. */
  remedy: string;
}

const entry =
  (severity: Severity) =>
  (title: string, remedy: string): Entry => ({ severity, title, remedy });
const error = entry('error');
const warning = entry('warning');
const info = entry('info');

/** Every finding. Each has a page `docs/doctor/ID.md`; a test holds the two together. */
export const catalogue = {
  'nothing-attached': error(
    'Nothing of Sidelight is attached',
    'Attach it (`sidelight attach`); under Istio check that the EnvoyFilter selects this proxy.',
  ),
  'config-rejected': error(
    'Envoy refused its last config',
    'Mend what Envoy names; until then it runs on the config before. An Envoy older than 1.37 refuses `custom_tags` with a `value`.',
  ),
  'envoy-too-old': error(
    'This Envoy is too old for the profile',
    'Update to Envoy 1.37 (Istio 1.29), or attach profile `tag`, which runs from 1.36 on.',
  ),
  'chain-not-attached': warning(
    'A filter chain is not attached, others beside it are',
    'Widen the match of the patch, or attach this chain too; if it is left out on purpose, `--ignore chain-not-attached`.',
  ),
  'switched-off': warning(
    'Sidelight is switched off here',
    'To switch it on again: POST `/runtime_modify?KEY=` with an empty value, or take the key out of the runtime layer.',
  ),
  'filter-order': error(
    'Our filters are in the wrong order',
    'Put them in this order, last before the router: header mutation that removes, ext_proc, header mutation that adds.',
  ),
  'filter-after-ours': info(
    'A filter runs after ours and is not seen by it',
    'Put ours last before the router, so that what other filters refuse or change passes it on the way back.',
  ),
  'default-filter-name': warning(
    "ext_proc has the plain name that Istio's InferencePool uses",
    'Give the filter a name of its own, such as envoy.filters.http.ext_proc.sidelight.',
  ),
  'attached-to-tunnel': error(
    'The HBONE tunnel itself is attached',
    'Match the listener by its name (`listener: {name: main_internal}`): a CONNECT stream is no request, and each call counts twice.',
  ),
  'cluster-missing': error(
    'The cluster of Sidelight does not exist',
    'Add the cluster; on a waypoint name the service in `envoyfilter.istio.io/referenced-services: NAMESPACE/HOST`.',
  ),
  'cluster-empty': error(
    'The cluster of Sidelight has no host',
    'Check the Service and its pods (`kubectl get endpointslices`), or the address in `load_assignment`.',
  ),
  'cluster-unreachable': error(
    'No host of the cluster of Sidelight can be reached',
    'Check that Sidelight runs, and the way to its port (NetworkPolicy, mTLS, port 50051).',
  ),
  'cluster-not-http2': error(
    'The cluster of Sidelight does not speak HTTP/2',
    'Set `explicit_http_config: {http2_protocol_options: {}}`; under Istio name the port of the Service `grpc`.',
  ),
  'authority-refused': error(
    'Sidelight refuses the name that it is called by',
    'Set `envoy_grpc: {authority: NAME.NAMESPACE.svc.cluster.local}` beside `cluster_name`, and `grpc_health_check: {authority: …}`; `sidelight attach --service` does.',
  ),
  'cluster-unbounded': warning(
    'A frozen Sidelight would cost every request its timeout',
    'Add a gRPC health check (interval 1 s) and `healthy_panic_threshold: {value: 0}` to the cluster, as envoy/full.yaml has them.',
  ),
  'fails-closed': error(
    'Requests fail when Sidelight is away',
    'Set `failure_mode_allow: true` in the ext_proc filter.',
  ),
  'failed-open': error(
    'Requests passed untagged because Sidelight did not answer',
    'Check the cluster of Sidelight and its log; `message_timeouts` beside it counts those that waited.',
  ),
  'message-timeout-long': warning(
    'A frozen Sidelight would hold a request for long',
    'Set `message_timeout: 0.2s` in the ext_proc filter.',
  ),
  'immediate-response-allowed': warning(
    'Sidelight may answer in place of the upstream',
    'Set `disable_immediate_response: true` in the ext_proc filter.',
  ),
  'mutations-open': warning(
    'Sidelight may change any header',
    'Set `mutation_rules` as envoy/full.yaml has them: `disallow_all: true`, and an expression for x-sidelight-*.',
  ),
  'headers-open': warning(
    'All headers are sent to Sidelight, credentials too',
    'Set `forward_rules.allowed_headers` as envoy/full.yaml has it.',
  ),
  'body-sent': warning('Bodies are sent to Sidelight', 'Set `request_body_mode` and `response_body_mode` to NONE.'),
  'attribute-not-sent': error(
    'Attributes are asked for in a phase that is not sent',
    'Ask for them in the phase that is sent, or set that phase to SEND.',
  ),
  'attributes-missing': warning(
    'Attributes are missing that tags are made of',
    'Carry over `response_attributes` of envoy/full.yaml.',
  ),
  'node-attribute': warning(
    'The whole node is sent with every request',
    'Ask for `xds.node.id` and `xds.node.cluster` instead of `xds.node`.',
  ),
  'metadata-dropped': warning(
    'Tags do not reach dynamic metadata',
    'Set `metadata_options: {receiving_namespaces: {untyped: [sidelight]}}` in the ext_proc filter.',
  ),
  'age-not-sent': warning(
    'Connection ids and ages do not reach Sidelight',
    'Carry over the header mutation after ext_proc, and both x-sidelight-internal-* in `forward_rules`.',
  ),
  'internal-headers-leak': warning(
    'Clients see the x-sidelight-internal headers',
    'Carry over the header mutation before ext_proc, which removes them.',
  ),
  'route-switches-off': warning(
    'A route switches our filter off or overrides it',
    'Take the entry out of `typed_per_filter_config`, or name our filter otherwise.',
  ),
  'profile-mismatch': error(
    'ext_proc, log and profile do not fit together',
    'Use one shipped config whole: `full` has ext_proc and log, `tag` ext_proc alone, `observe` the log alone.',
  ),
  'log-name-unknown': error(
    'The log has a name that Sidelight refuses',
    'Set `log_name: sidelight.PROFILE.2`, PROFILE being full or observe.',
  ),
  'logger-missing': error(
    'Only one of the two access logs is there',
    'The connection manager needs `access_log`, the router `upstream_log`: with one of them no retry can be seen.',
  ),
  'loggers-differ': error(
    'The access logs have different configs',
    'Make `common_config` the same in all: only then do they share a stream, and only there are attempts joined to requests.',
  ),
  'logger-filtered': error(
    'The access log leaves entries out',
    'Take `filter` out of the access log: a request whose attempts are not all there cannot be judged.',
  ),
  'key-not-early': error(
    'The key is not set before the filters',
    'Set x-sidelight-key by `early_header_mutation_extensions`: what a filter sets is missing from what earlier filters refuse.',
  ),
  'key-not-overwritten': error(
    'The key of the hop before is kept',
    'Set `append_action: OVERWRITE_IF_EXISTS_OR_ADD`: else this hop joins by the key of another.',
  ),
  'key-not-logged': error(
    'The log does not carry the key',
    'Add `{tag: key, value: "%REQ(x-sidelight-key)%"}` to `custom_tags`.',
  ),
  'tags-missing': warning('Tags are missing from the log', 'Carry over `custom_tags` of envoy/observe.yaml.'),
  'no-periodic-flush': warning(
    'Long requests and connections are not seen while they live',
    'Set `upstream_log_options: {upstream_log_flush_interval: 5s}` in the router, and `access_log_options` in a TCP proxy.',
  ),
  'config-old': warning(
    'The attached config is older than the one that is shipped',
    'Carry over the parts that are new, then the number in `log_name`; the CHANGELOG says what they are.',
  ),
  'entries-dropped': error(
    'Envoy dropped log entries',
    'Check the cluster of Sidelight; raise `buffer_size_bytes`, or the stream window, if Sidelight is there but slow.',
  ),
  'tcp-not-logged': info(
    'TCP connections are not logged',
    'Carry over the TCP part of envoy/observe.yaml if connections there are to be seen.',
  ),
  'calls-itself': error(
    'Sidelight is attached in front of itself',
    'Leave this proxy out: each call to Sidelight makes another one. Under Istio: `sidecar.istio.io/inject: "false"` on its pods.',
  ),
  'no-requests': info(
    'No request has been seen yet',
    'Send one: Envoy opens its log stream with the first request, and until then nothing shows up.',
  ),
  'retry-stats-absent': info(
    'Envoy does not collect its retry statistics',
    'Never read them as 0. Sidelight counts by itself; for the counters: `proxyStatsMatcher.inclusionRegexps: [".*upstream_rq_retry.*"]`.',
  ),
  'ext-proc-stats-absent': info(
    'Envoy does not collect the statistics of ext_proc',
    'Whether requests pass untagged cannot be told: `proxyStatsMatcher.inclusionRegexps: [".*ext_proc.*"]`.',
  ),
  'failures-not-retried': warning(
    'Hosts fail, and nothing retries',
    'If requests there may be repeated, set a retry policy (Istio: `retries.attempts` above 0); else look at the host.',
  ),
  'dns-pins': warning(
    'LOGICAL_DNS keeps connections to addresses that left',
    'Use STRICT_DNS (Istio: `resolution: DNS`), or Envoy 1.39 with `enable_new_dns_implementation` on.',
  ),
  'traffic-elsewhere': warning(
    'Traffic for a host leaves by another cluster',
    'Look at the listener and route that are named: they match first. What watches the other cluster sees nothing.',
  ),
  'host-unknown': warning(
    'No route and no cluster is for this host',
    'Check the name; under Istio a host outside the mesh without a ServiceEntry goes by PassthroughCluster.',
  ),
  'retry-layers': warning(
    'Three layers in a row retry',
    'Let one layer retry, best the one next to the server, and set the others to 0.',
  ),
  'waypoint-target': error(
    'A waypoint cannot be named by a Service',
    'Name the Gateway: `targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: waypoint}]`; one service is chosen by `filterChain.name`.',
  ),
  'waypoint-class-namespace': error(
    'A GatewayClass is named outside the root namespace',
    'Put the EnvoyFilter into the root namespace (istio-system), or name a Gateway of its own namespace.',
  ),
  'waypoint-selector': error(
    'A waypoint is chosen by targetRefs alone',
    'Use `targetRefs` with the Gateway; a waypoint takes no notice of labels, nor of an EnvoyFilter for a whole namespace.',
  ),
  'waypoint-context': error(
    'A waypoint does not know this context',
    'Set `context: SIDECAR_INBOUND` and `listener: {name: main_internal}`.',
  ),
  'waypoint-listener': error(
    'The patch does not name the listener of the requests',
    'Set `listener: {name: main_internal}`: else it lands on the HBONE tunnel too, or nowhere.',
  ),
  'waypoint-cluster-add': error(
    'The cluster is not added to the waypoint',
    'Set `match: {context: SIDECAR_INBOUND}`; with another context it is dropped.',
  ),
  'waypoint-cluster-merge': error(
    'A waypoint takes no change to a cluster',
    'Add a cluster of your own (`operation: ADD`, `context: SIDECAR_INBOUND`) and send to that one.',
  ),
  'waypoint-route-patch': warning(
    'Route patches do not reach routes of a VirtualService or HTTPRoute',
    'Set it in the VirtualService or HTTPRoute itself, or merge it into the connection manager.',
  ),
  'waypoint-not-referenced': error(
    'The waypoint does not get the cluster of Sidelight',
    'Add the annotation `envoyfilter.istio.io/referenced-services: NAMESPACE/HOST`.',
  ),
  'service-hidden': error(
    'The sidecars do not know the Service of Sidelight',
    "Let it in: `NAMESPACE/HOST` among the egress hosts of the `Sidecar` resource, and the Service's `exportTo`.",
  ),
  'mesh-wide-inbound': error(
    "Sidelight's own pods are attached too",
    'Choose workloads (`workloadSelector`), or keep its pods out: `sidecar.istio.io/inject: "false"`. Else each call to it makes another.',
  ),
  'next-hop-key': error(
    'The next hop logs the key of this one',
    'Set the key early on the next hop too, with OVERWRITE_IF_EXISTS_OR_ADD.',
  ),
} as const satisfies Record<string, Entry>;

export type FindingId = keyof typeof catalogue;
export const findingIds = Object.keys(catalogue) as FindingId[];
