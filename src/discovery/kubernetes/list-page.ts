import { z } from 'zod';

/** A page of a list, of whatever it lists. */
export interface ListPage {
  items: unknown[];
  /** Of the whole list; a watch goes on from it. */
  version: string;
  /** Where the next page begins; `undefined`: this was the last one. */
  next: string | undefined;
}

const listObject = z.object({
  metadata: z.object({ resourceVersion: z.string(), continue: z.string().optional() }),
  items: z.array(z.unknown()).nullable(),
});

/** Throws when it is no list. */
export function readListPage(value: unknown): ListPage {
  const { metadata, items } = listObject.parse(value);
  return { items: items ?? [], version: metadata.resourceVersion, next: metadata.continue || undefined };
}
