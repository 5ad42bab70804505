import { globSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { readDoc, tableOf } from '../support/doc-tables.ts';
import { readManifestText } from '../support/manifests.ts';

const page = readDoc('kubernetes.md');
const root = path.join(import.meta.dirname, '../..');

it('the page names every folder that kubectl can build, and no other', () => {
  const named = tableOf(page, ['folder', 'what it is']).map(([folder = '']) => folder.replaceAll('`', ''));
  const built = globSync('k8s/**/kustomization.yaml', { cwd: root }).map((file) => path.dirname(file));
  expect(named.toSorted()).toEqual(built.toSorted());
});

it('its limits are those of the manifests', () => {
  const deployment = readManifestText('base/deployment.yaml');
  for (const [said, written] of [
    ['serves on for 10 s', 'seconds: 10\n'],
    ['kills it after 30', 'terminationGracePeriodSeconds: 30\n'],
    ['heap full (352 MiB)', '--max-old-space-size=352\n'],
    ['of the 512 allowed', 'limits:\n              memory: 512Mi\n'],
  ] as const) {
    expect(page).toContain(said);
    expect(deployment).toContain(written);
  }
  expect(page).toContain('then ends its streams (10 s at most)');
  expect(readManifestText('base/sidelight.yaml')).toContain('shutdownMs: 10000\n');
});
