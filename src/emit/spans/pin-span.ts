import { SpanKind } from '@opentelemetry/api';
import type { ClearedPin, PinLife } from '../../model/pin-life.ts';
import { attribute as a, type SpanFacts } from '../attributes.ts';
import { reporterAttributes, type SpanPlan, unset } from './exchange-span.ts';

/** From the moment the endpoint left to `seenMs`, when the pin was seen stale. */
export function stalePinPlan(life: PinLife, seenMs: number): SpanPlan {
  const { leftAtMs } = life;
  return { ...common(life), name: 'stale pin', startMs: leftAtMs, endMs: Math.max(leftAtMs, seenMs) };
}

/** From there to its end. */
export function clearedPinPlan(pin: ClearedPin, seenMs: number): SpanPlan {
  const plan = common(pin);
  return {
    ...plan,
    name: 'stale pin cleared',
    startMs: seenMs,
    endMs: Math.max(seenMs, pin.clearedMs),
    facts: { ...plan.facts, [a.how]: pin.how, 'sidelight.closed_by': pin.by },
  };
}

function common(life: PinLife): Pick<SpanPlan, 'kind' | 'facts' | 'status' | 'link'> {
  return { kind: SpanKind.INTERNAL, facts: factsOf(life), status: unset, link: undefined };
}

function factsOf({ connection, pin, leftAtMs, source }: PinLife): SpanFacts {
  const { reporter, cluster, peer, layer, connectionId, openedMs, lastUsedMs, requests, bytes } = connection;
  return {
    ...reporterAttributes(reporter),
    [a.cluster]: cluster,
    [a.endpoint]: peer.text,
    [a.layer]: layer,
    [a.pin]: pin,
    [a.source]: source,
    'sidelight.connection.id': connectionId,
    'sidelight.connection.opened_at': isoTime(openedMs),
    'sidelight.connection.last_used_at': isoTime(lastUsedMs),
    'sidelight.connection.requests': layer === 'http' ? requests : undefined,
    'sidelight.connection.bytes': bytes,
    'sidelight.endpoint.left_at': isoTime(leftAtMs),
  };
}

/** Beyond this a `Date` throws; a proxy may say any time. */
const longestMs = 8.64e15;

function isoTime(epochMs: number): string | undefined {
  // oxlint-disable-next-line no-restricted-globals -- writing a text reads no clock.
  return Math.abs(epochMs) <= longestMs ? new Date(epochMs).toISOString() : undefined;
}
