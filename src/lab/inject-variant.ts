import type { HttpFilter, Json } from './envoy-config.ts';

interface ExtProcConfig extends Json {
  grpc_service: { initial_metadata: { key: string; value: string }[] };
  processing_mode: { request_header_mode: string };
  mutation_rules: { allow_expression: { regex: string } };
}

/** Does what the three comments `Inject variant` in the shipped files tell an operator to do. */
export function allowInject(filters: readonly HttpFilter[]): void {
  const filter = filters.find(({ name }) => name === 'envoy.filters.http.ext_proc.sidelight');
  if (!filter) throw new Error('only a config with ext_proc can inject');
  const config = filter.typed_config as unknown as ExtProcConfig;
  config.grpc_service.initial_metadata.push({ key: 'x-sidelight-inject', value: 'true' });
  config.processing_mode.request_header_mode = 'SEND';
  const rule = config.mutation_rules.allow_expression;
  rule.regex = rule.regex.replace('(', '(traceparent|');
}
