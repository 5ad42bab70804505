import { expect, test } from 'vitest';
import { readPodPage } from '../../src/discovery/kubernetes/pod-page.ts';

const pod = (name: string, more: object = {}) => ({
  metadata: { name, creationTimestamp: '2026-11-30T07:00:00Z', ...more },
});

test('a page of pods: names, ages, which were told to end, and where the next page begins', () => {
  const items = [pod('a'), pod('b', { deletionTimestamp: '2026-11-30T07:01:00Z' })];
  const createdMs = Date.UTC(2026, 10, 30, 7);
  expect(readPodPage({ metadata: { resourceVersion: '1', continue: 'next' }, items })).toEqual({
    pods: [
      { name: 'a', createdMs, ending: false },
      { name: 'b', createdMs, ending: true },
    ],
    next: 'next',
  });
  expect(readPodPage({ metadata: { resourceVersion: '1', continue: '' }, items: null })).toEqual({
    pods: [],
    next: undefined,
  });
});

test.each([
  {},
  { metadata: { resourceVersion: '1' }, items: [{}] },
  { metadata: { resourceVersion: '1' }, items: [pod('a', { creationTimestamp: 'today' })] },
  '<html>',
])('%j is no page of pods', (value) => {
  expect(() => readPodPage(value)).toThrow(/invalid/i);
});
