import { expect, test } from 'vitest';
import { cutText, idText, labelText } from '../../src/decode/text.ts';
import { countText, microsTextMs, timestampTextMs, wireMs } from '../../src/decode/time.ts';

test.each([
  ['abcdef', 4, 'abcd'],
  ['abcd', 4, 'abcd'],
  ['aé', 2, 'a'],
  ['a€b', 3, 'a'],
  ['a€b', 4, 'a€'],
  ['€', 0, ''],
])('%s cut to %i bytes is %s', (text, bytes, cut) => {
  expect(cutText(text, bytes)).toBe(cut);
});

test('an empty label is absent', () => {
  expect(labelText('', 10)).toBeUndefined();
  expect(labelText('abc', 2)).toBe('ab');
});

test('an id is never cut: one that is too long is no id', () => {
  expect(idText('x'.repeat(512))).toBe('x'.repeat(512));
  expect(idText('x'.repeat(513))).toBeUndefined();
  expect(idText('')).toBeUndefined();
});

test.each([
  ['2026-11-29T23:30:32.112862+00:00', 1_795_995_032_112.862],
  ['2026-11-29T23:30:32Z', 1_795_995_032_000],
  ['2026-11-30T01:30:32.5+02:00', 1_795_995_032_500],
])('%s is %d ms', (text, ms) => {
  expect(timestampTextMs(text)).toBeCloseTo(ms, 3);
});

test.each(['', 'now', '2026-11-29', '2026-99-29T23:30:32Z', '2026-11-29T23:30:32.1234567890Z'])(
  '%j is no timestamp',
  (text) => {
    expect(timestampTextMs(text)).toBeUndefined();
  },
);

test.each([
  [{ seconds: 1_795_995_032, nanos: 80_274_000 }, 1_795_995_032_080.274],
  [{ nanos: 573_526 }, 0.573526],
  [{}, 0],
  [undefined, undefined],
])('the protobuf time %j is %d ms', (time, ms) => {
  expect(wireMs(time)).toBe(ms);
});

test('a count of microseconds becomes milliseconds; anything else is absent', () => {
  expect(microsTextMs('17846')).toBe(17.846);
  for (const text of [undefined, '', '-', '-5', '1.5', '0x10', '9'.repeat(16)]) {
    expect(microsTextMs(text)).toBeUndefined();
    expect(countText(text)).toBeUndefined();
  }
});
