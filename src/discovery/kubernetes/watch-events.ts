import { z } from 'zod';
import { type ListPage, readListPage } from './list-page.ts';
import { readSlice, type Slice } from './slice.ts';

/** A page of a list. */
export type SlicePage = Pick<ListPage, 'version' | 'next'> & { slices: Slice[] };

/** One line of a watch. `version`: what the watch would go on from. */
export type WatchEvent =
  | { kind: 'slice'; slice: Slice; gone: boolean; version: string }
  | { kind: 'other'; version: string }
  /** The version that was asked for is forgotten. */
  | { kind: 'expired' }
  | { kind: 'error'; message: string };

/** Throws when it is no list of EndpointSlices. */
export function readPage(value: unknown): SlicePage {
  const { items, ...page } = readListPage(value);
  return { ...page, slices: items.flatMap((item) => readSlice(item) ?? []) };
}

const eventObject = z.discriminatedUnion('type', [
  z.object({
    type: z.enum(['ADDED', 'MODIFIED', 'DELETED']),
    object: z.looseObject({ metadata: z.looseObject({ resourceVersion: z.string() }) }),
  }),
  z.object({
    type: z.literal('BOOKMARK'),
    object: z.object({ metadata: z.object({ resourceVersion: z.string() }) }),
  }),
  z.object({ type: z.literal('ERROR'), object: z.object({ code: z.number().optional(), message: z.string() }) }),
]);

/** Throws when it is no event. */
export function readEvent(value: unknown): WatchEvent {
  const event = eventObject.parse(value);
  if (event.type === 'ERROR') {
    const { code, message } = event.object;
    return code === 410 ? { kind: 'expired' } : { kind: 'error', message };
  }
  const version = event.object.metadata.resourceVersion;
  const slice = event.type === 'BOOKMARK' ? undefined : readSlice(event.object);
  return slice === undefined
    ? { kind: 'other', version }
    : { kind: 'slice', slice, gone: event.type === 'DELETED', version };
}
