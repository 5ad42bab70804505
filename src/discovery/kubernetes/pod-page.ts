import { z } from 'zod';
import { readListPage } from './list-page.ts';

/** What is kept of a pod. */
export interface Pod {
  name: string;
  /** Epoch ms, the API server's clock. */
  createdMs: number;
  /** It was told to end. */
  ending: boolean;
}

/** Asks for what a pod is called and no more: its containers and its state are kilobytes. */
export const metadataOnly = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

const pod = z.object({
  metadata: z.object({
    name: z.string(),
    creationTimestamp: z.iso.datetime(),
    deletionTimestamp: z.string().nullish(),
  }),
});

/** A page of a list of pods. `next`: where the next page begins; `undefined`: this was the last one. Throws when it is none. */
export function readPodPage(value: unknown): { pods: Pod[]; next: string | undefined } {
  const { items, next } = readListPage(value);
  return { pods: items.map(readPod), next };
}

function readPod(value: unknown): Pod {
  const { name, creationTimestamp, deletionTimestamp } = pod.parse(value).metadata;
  return { name, createdMs: Date.parse(creationTimestamp), ending: typeof deletionTimestamp === 'string' };
}
