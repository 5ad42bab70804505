import { isAttachedHttp } from '../chains.ts';
import { findingIf, type ProxyFinding } from '../finding.ts';
import { at, durationMsAt, isTrueAt, type JsonObject, listAt, objectAt, textAt } from '../json.ts';
import type { ExtProcPart } from '../parts.ts';
import type { Proxy } from '../proxy.ts';
import { shippedAttributes } from '../shipped.ts';

/** The settings of each ext_proc filter of ours. */
export function checkExtProcs({ attached }: Proxy): ProxyFinding[] {
  return attached
    .filter(isAttachedHttp)
    .flatMap(({ where, extProcs }) =>
      extProcs.flatMap((part) => checkExtProc(part, `${where}, filter ${part.filterName}`)),
    );
}

/** One ext_proc filter, wherever it is written. */
function checkExtProc({ config }: ExtProcPart, where: string): ProxyFinding[] {
  const timeoutMs = durationMsAt(config, 'message_timeout');
  const rules = objectAt(config, 'mutation_rules');
  return [
    ...findingIf(!isTrueAt(config, 'failure_mode_allow'), 'fails-closed', {
      where,
      evidence: `failure_mode_allow: ${at(config, 'failure_mode_allow') === false ? 'false' : 'absent, which is false'}`,
    }),
    ...findingIf(timeoutMs !== undefined && timeoutMs >= 1000, 'message-timeout-long', {
      where,
      evidence: `message_timeout: ${textAt(config, 'message_timeout')}`,
    }),
    ...findingIf(!isTrueAt(config, 'disable_immediate_response'), 'immediate-response-allowed', {
      where,
      evidence: 'disable_immediate_response: false',
    }),
    ...findingIf(!isTrueAt(rules, 'disallow_all'), 'mutations-open', {
      where,
      evidence: Object.keys(rules).length === 0 ? 'no mutation_rules' : `mutation_rules without disallow_all`,
    }),
    ...findingIf(listAt(config, 'forward_rules', 'allowed_headers', 'patterns').length === 0, 'headers-open', {
      where,
      evidence: 'no forward_rules.allowed_headers',
    }),
    ...findingIf(
      !listAt(config, 'metadata_options', 'receiving_namespaces', 'untyped').includes('sidelight'),
      'metadata-dropped',
      {
        where,
        evidence: 'metadata_options.receiving_namespaces.untyped does not name sidelight',
      },
    ),
    ...phases(config, where),
  ];
}

function phases(config: JsonObject, where: string): ProxyFinding[] {
  const mode = (name: string) => textAt(config, 'processing_mode', name);
  const bodies = ['request_body_mode', 'response_body_mode'].filter((name) => !['', 'NONE'].includes(mode(name)));
  const asked = (phase: string) => listAt(config, `${phase}_attributes`).filter((one) => typeof one === 'string');
  const skipped = ['request', 'response'].filter(
    (phase) => mode(`${phase}_header_mode`) === 'SKIP' && asked(phase).length > 0,
  );
  const all = [...asked('request'), ...asked('response')];
  const missing = shippedAttributes.filter((name) => !all.includes(name));
  return [
    ...findingIf(bodies.length > 0, 'body-sent', {
      where,
      evidence: bodies.map((name) => `${name}: ${mode(name)}`).join(', '),
    }),
    ...skipped.flatMap((phase) =>
      findingIf(true, 'attribute-not-sent', {
        where,
        evidence: `${phase}_header_mode: SKIP, ${phase}_attributes: ${asked(phase).join(', ')}`,
      }),
    ),
    ...findingIf(all.includes('xds.node'), 'node-attribute', { where, evidence: 'attribute xds.node' }),
    ...findingIf(missing.length > 0, 'attributes-missing', { where, evidence: `not asked for: ${missing.join(', ')}` }),
  ];
}
