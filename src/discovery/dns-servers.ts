import { type Families, noFamilies, type Round, readRound } from './dns-answer.ts';

/** What one name server (or several, of which the first that answers counts) said in a round. */
export interface Asked {
  /** As an error names it. */
  server: string;
  round: Round;
}

/** What a round over all servers means. */
export interface ServersMeaning {
  /** What is kept of each server that is still asked. */
  families: ReadonlyMap<string, Families>;
  /** Everything that any server lists; `undefined`: none of them ever gave an address. */
  addresses: readonly string[] | undefined;
  /** A server that lists addresses did not answer well: they hold, but this is no good answer. */
  doubt: string | undefined;
  /** Every failure, with the server's name; absent where all answered. */
  error: string | undefined;
  ttlsMs: readonly number[];
}

/** Merges what each server said. One that never knew the name takes nothing away, and is no reason for doubt. */
export function readServers(before: ReadonlyMap<string, Families>, asked: readonly Asked[]): ServersMeaning {
  const read = asked.map(({ server, round }) => ({
    server,
    ...readRound(before.get(server) ?? noFamilies, round),
  }));
  const failures = read.filter(({ error }) => error !== undefined);
  const known = read.some(({ families }) => families.everHad);
  return {
    families: new Map(read.map(({ server, families }) => [server, families])),
    addresses: known ? [...new Set(read.flatMap(({ addresses }) => addresses))] : undefined,
    doubt: inWords(failures.filter(({ families }) => families.everHad)),
    error: inWords(failures),
    ttlsMs: read.flatMap(({ ttlsMs }) => ttlsMs),
  };
}

function inWords(failures: readonly { server: string; error: string | undefined }[]): string | undefined {
  if (failures.length === 0) return undefined;
  return failures.map(({ server, error }) => `${error} from ${server}`).join(', ');
}
