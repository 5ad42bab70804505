import type { Json } from './envoy-config.ts';

/** The retry policy that Istio gives every HTTP route by default. */
export const istioRetries: Json = {
  retry_on: 'connect-failure,refused-stream,unavailable,cancelled',
  num_retries: 2,
  retry_host_predicate: [
    {
      name: 'envoy.retry_host_predicates.previous_hosts',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate',
      },
    },
  ],
  host_selection_retry_max_attempts: 5,
};

/** Envoy's own default lets only three retries run at once; Istio lifts that. */
export const manyRetries: Json = { circuit_breakers: { thresholds: [{ max_retries: 1024 }] } };
