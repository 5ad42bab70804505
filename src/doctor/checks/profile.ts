import { type HttpChain, isAttachedHttp } from '../chains.ts';
import { finding, findingIf, type ProxyFinding } from '../finding.ts';
import { isOlder, type Proxy } from '../proxy.ts';
import { nameParts } from './logs.ts';

/** Whether ext_proc, log and profile fit each other, and the Envoy them. */
export function checkProfiles(proxy: Proxy): ProxyFinding[] {
  return [
    ...proxy.attached.filter(isAttachedHttp).flatMap(checkChain),
    ...age(proxy),
    ...proxy.config.rejected.map(({ resource, details }) =>
      finding('config-rejected', { where: resource, evidence: details }),
    ),
  ];
}

function checkChain(chain: HttpChain): ProxyFinding[] {
  const wrong = (evidence: string) => [finding('profile-mismatch', { where: chain.where, evidence })];
  const [extProc] = chain.extProcs;
  const logged = profileOfLogs(chain);
  if (extProc === undefined) {
    return logged === 'full' ? wrong('the log says full, and there is no ext_proc filter') : [];
  }
  const { profile } = extProc;
  if (profile === '') return wrong(`filter ${extProc.filterName} sends no x-sidelight-profile`);
  if (profile !== 'full' && profile !== 'tag') return wrong(`x-sidelight-profile: ${profile}`);
  if (chain.logs.length === 0) return profile === 'tag' ? [] : wrong('x-sidelight-profile: full, and there is no log');
  return logged === undefined || logged === profile
    ? []
    : wrong(`x-sidelight-profile: ${profile}, log_name: ${chain.logs[0]?.logName}`);
}

/** `undefined`: the names say none, which is a finding of its own. */
function profileOfLogs({ logs }: HttpChain): string | undefined {
  return logs.map(({ logName }) => nameParts(logName)?.[1]).find((profile) => profile !== undefined);
}

/** Formatters in `custom_tags`: Envoy 1.37. docs/decisions/0003-envoy-versions.md */
function age({ version, attached }: Proxy): ProxyFinding[] {
  const hasLogs = attached.some(({ logs }) => logs.length > 0);
  const least = hasLogs ? 37 : 36;
  return findingIf(attached.length > 0 && isOlder(version, 1, least), 'envoy-too-old', {
    where: 'Envoy',
    evidence: `version ${version}; ${hasLogs ? 'full and observe need' : 'tag needs'} 1.${least}`,
  });
}
