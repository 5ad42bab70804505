import type { SidelightPlace } from '../../attach/plan.ts';
import { parseHostPort } from '../../lib/host-port.ts';
import { isSocketPath, longestSocketPath } from '../../lib/socket-path.ts';
import type { AttachFlags } from './flags.ts';
import type { Problems } from './problems.ts';

const defaultPort = 50_051;
/** The Service without an address of its own that `k8s/base` makes: its name has one for each replica. */
const inCluster: SidelightPlace = {
  kind: 'address',
  host: 'sidelight-replicas.sidelight.svc.cluster.local',
  port: defaultPort,
};
const onThisMachine: SidelightPlace = { kind: 'address', host: '127.0.0.1', port: defaultPort };

/** Where the proxies find Sidelight, as the flags say; where it is by default if they do not, or are wrong. */
export function parsePlace(flags: AttachFlags, isIstio: boolean, problems: Problems): SidelightPlace {
  return given(flags, problems) ?? (isIstio ? inCluster : onThisMachine);
}

function given(flags: AttachFlags, problems: Problems): SidelightPlace | undefined {
  if ([flags.service, flags.address, flags.uds].filter((flag) => flag !== undefined).length > 1)
    return problems.say('--service, --address, --uds: expected one of them');
  if (flags.service !== undefined) return service(flags.service, problems);
  if (flags.address !== undefined) return address(flags.address, problems);
  return flags.uds === undefined ? undefined : socket(flags.uds, problems);
}

const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
const serviceShape = new RegExp(`^(?<name>${label})\\.(?<namespace>${label})(?::(?<port>\\d{1,5}))?$`);

function service(text: string, problems: Problems): SidelightPlace | undefined {
  const groups = serviceShape.exec(text)?.groups;
  const port = Number(groups?.['port'] ?? defaultPort);
  if (groups === undefined || port < 1 || port > 65_535)
    return problems.found('--service', text, 'NAME.NAMESPACE or NAME.NAMESPACE:PORT');
  return { kind: 'service', name: groups['name'] ?? '', namespace: groups['namespace'] ?? '', port };
}

function address(text: string, problems: Problems): SidelightPlace | undefined {
  const parsed = parseHostPort(text);
  if (parsed === undefined || parsed.port === 0) return problems.found('--address', text, 'host:port or [v6]:port');
  return { kind: 'address', ...parsed };
}

function socket(text: string, problems: Problems): SidelightPlace | undefined {
  if (isSocketPath(text)) return { kind: 'uds', path: text };
  return problems.found('--uds', text, `an absolute path of ${longestSocketPath} bytes at most`);
}
