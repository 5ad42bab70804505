/** What DNS said to one question, A or AAAA. */
export type FamilyAnswer =
  | { kind: 'addresses'; addresses: readonly string[]; ttlMs: number }
  /** NXDOMAIN or no data: an answer, and it says "none". */
  | { kind: 'none'; error: string }
  /** No usable answer: a timeout, SERVFAIL, a refusal, bytes that are no DNS. */
  | { kind: 'failed'; error: string };

/** One round of both questions. */
export interface Round {
  v4: FamilyAnswer;
  v6: FamilyAnswer;
}

/** What is kept of a family between rounds. */
interface Family {
  /** Those that hold. */
  addresses: readonly string[];
  /** The last round said "none" of it. */
  saidNone: boolean;
}

/** What is kept between rounds. */
export interface Families {
  v4: Family;
  v6: Family;
  /** The name had an address once. */
  everHad: boolean;
}

const empty: Family = { addresses: [], saidNone: false };
export const noFamilies: Families = { v4: empty, v6: empty, everHad: false };

/** What a round means for the view. */
export interface Meaning {
  families: Families;
  /** Those that hold: of a family in doubt, what it said before. */
  addresses: readonly string[];
  /** Of what was said in this round; none where no address was. */
  ttlsMs: readonly number[];
  /** Why the round is no good answer; `undefined`: it is one. */
  error: string | undefined;
}

/**
 * Merges A and AAAA. The round is good unless a family is in doubt:
 * - it failed, and addresses of it hold, or the other family gave none either (AAAA that always fails, behind a
 *   middlebox that cannot do it, harms no good A);
 * - it says "none" for the first time after it had addresses: a broken resolver may say so once, and that must not
 *   make every connection stale. Twice in a row is believed.
 * A name that never had an address gives no answer: more likely the name is wrong.
 */
export function readRound(before: Families, round: Round): Meaning {
  const v4 = familyAfter(before.v4, round.v4);
  const v6 = familyAfter(before.v6, round.v6);
  const addresses = [...v4.addresses, ...v6.addresses];
  const families = { v4, v6, everHad: before.everHad || addresses.length > 0 };
  const doubt = doubtOf(before.v4, round.v4, round.v6) ?? doubtOf(before.v6, round.v6, round.v4);
  const neverHad = families.everHad ? undefined : (errorOf(round.v4) ?? errorOf(round.v6) ?? 'no address');
  return { families, addresses, ttlsMs: ttlsOf(round), error: doubt ?? neverHad };
}

function familyAfter(before: Family, answer: FamilyAnswer): Family {
  if (answer.kind === 'addresses') return { addresses: answer.addresses, saidNone: false };
  if (answer.kind === 'failed') return { ...before, saidNone: false };
  return { addresses: before.saidNone ? [] : before.addresses, saidNone: true };
}

function doubtOf(before: Family, answer: FamilyAnswer, other: FamilyAnswer): string | undefined {
  if (answer.kind === 'addresses') return undefined;
  const holds = before.addresses.length > 0;
  const inDoubt = answer.kind === 'failed' ? holds || other.kind !== 'addresses' : holds && !before.saidNone;
  return inDoubt ? answer.error : undefined;
}

function errorOf(answer: FamilyAnswer): string | undefined {
  return answer.kind === 'addresses' ? undefined : answer.error;
}

function ttlsOf({ v4, v6 }: Round): number[] {
  return [v4, v6].flatMap((answer) => (answer.kind === 'addresses' ? [answer.ttlMs] : []));
}
