import type { AttachPlan, SidelightPlace } from '../../attach/plan.ts';
import { type Profile, profiles } from '../../model/reporter.ts';
import { parseDuration } from '../duration.ts';
import type { AttachFlags } from './flags.ts';
import { parsePlace } from './place.ts';
import type { Problems } from './problems.ts';

const mostProxies = 1_000_000;
/** A Sidelight of its own is checked each second, one that a mesh shares less often: docs/attach.md. */
const defaultProxies = { shared: 1000, own: 1 };

/** What is attached, wherever. Each mistake is told, and something right stands in its place, so that all are. */
export function parseWhat(flags: AttachFlags, isIstio: boolean, problems: Problems): AttachPlan {
  const profile = profiles.find((known) => known === flags.profile);
  if (profile === undefined) problems.found('--profile', flags.profile, profiles.join(', '));
  const place = parsePlace(flags, isIstio, problems);
  const samplePercent = flags.sample === undefined ? undefined : percent(flags.sample, problems);
  if (profile === 'observe') refuseForObserve(flags, samplePercent, problems);
  return {
    profile: profile ?? 'observe',
    place,
    inject: flags.inject === true,
    samplePercent,
    messageTimeoutMs: timeout(flags.messageTimeout, problems),
    proxies: proxies(flags.proxies, isIstio && !isOfThePod(place), problems),
  };
}

function refuseForObserve({ inject }: AttachFlags, samplePercent: number | undefined, problems: Problems): void {
  if (inject) problems.say('--inject: profile observe cannot: nothing of it is in the path of a request');
  if (samplePercent !== undefined && samplePercent < 100)
    problems.say('--sample: profile observe counts every request: expected 100%, which only adds the kill switch');
}

/** Envoy draws in millionths. */
const percentShape = /^(?<number>\d{1,3}(?:\.\d{1,4})?)%?$/;

function percent(text: string, problems: Problems): number | undefined {
  const value = Number(percentShape.exec(text)?.groups?.['number'] ?? Number.NaN);
  return value > 0 && value <= 100
    ? value
    : problems.found('--sample', text, 'more than 0% and at most 100%, with 4 decimals at most');
}

function timeout(text: string, problems: Problems): number {
  const ms = parseDuration(text);
  if (ms !== undefined && ms >= 1 && ms <= 1000) return ms;
  problems.found('--message-timeout', text, '1ms to 1s: every request waits so long while Sidelight hangs');
  return 1;
}

/** In the proxy's own pod. */
function isOfThePod(place: SidelightPlace): boolean {
  return place.kind === 'uds' || (place.kind === 'address' && ['127.0.0.1', '::1', 'localhost'].includes(place.host));
}

function proxies(text: string | undefined, isShared: boolean, problems: Problems): number {
  if (text === undefined) return isShared ? defaultProxies.shared : defaultProxies.own;
  const count = /^\d{1,7}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= mostProxies) return count;
  problems.found('--proxies', text, `1 to ${mostProxies}`);
  return 1;
}

/** A profile that reads the log. */
export function logs(profile: Profile): boolean {
  return profile !== 'tag';
}
