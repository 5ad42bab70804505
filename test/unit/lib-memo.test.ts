import { expect, test } from 'vitest';
import { memo } from '../../src/lib/memo.ts';

test('gives the same object for the same text, and forgets all when there are too many', () => {
  const pair = memo((text) => ({ text }), 2);
  const [a, b] = [pair('a'), pair('b')];
  expect([pair('a'), pair('b')]).toEqual([{ text: 'a' }, { text: 'b' }]);
  expect(pair('a')).toBe(a);
  expect(pair('b')).toBe(b);
  pair('c');
  expect(pair('a')).not.toBe(a);
});
