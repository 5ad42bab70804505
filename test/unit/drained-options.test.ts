import { describe, expect, it } from 'vitest';
import { type DrainedFlags, parseDrained } from '../../src/cli/drained/options.ts';
import { bytesText } from '../../src/cli/drained/words.ts';
import { durationText, parseDuration } from '../../src/cli/duration.ts';

const flags: DrainedFlags = { quietFor: '60s', timeout: '15m' };

const targetOf = (text: string) => {
  const parsed = parseDrained(text, flags);
  return parsed.ok ? `${parsed.options.target.kind} ${parsed.options.target.text}` : 'wrong';
};

describe('the target', () => {
  it.each([
    ['10.0.0.7', 'endpoint 10.0.0.7'],
    ['10.0.0.7:8080', 'endpoint 10.0.0.7:8080'],
    ['2001:DB8:0::7', 'endpoint 2001:db8::7'],
    ['[2001:db8::7]', 'endpoint 2001:db8::7'],
    ['[2001:db8::7]:8080', 'endpoint [2001:db8::7]:8080'],
    ['::ffff:10.0.0.7', 'endpoint 10.0.0.7'],
    ['pay.example.com', 'host pay.example.com'],
    ['Payments', 'host payments'],
    ['pay.example.com:443', 'wrong'],
    ['10.0.0.256', 'wrong'],
    ['10.0.0', 'wrong'],
    ['10.0.0.7:0', 'wrong'],
    ['10.0.0.7:65536', 'wrong'],
    ['http://pay.example.com', 'wrong'],
    ['-pay', 'wrong'],
    ['', 'wrong'],
  ])('%j is %s', (text, expected) => {
    expect(targetOf(text)).toBe(expected);
  });
});

describe('--from', () => {
  const from = (...urls: string[]) => {
    const parsed = parseDrained('10.0.0.7', urls.length === 0 ? flags : { ...flags, from: urls });
    return parsed.ok ? parsed.options.from.map(({ href }) => href) : 'wrong';
  };

  it('is this machine unless told', () => expect(from()).toEqual(['http://127.0.0.1:9464/']));

  it('names each replica once, and a path before the API', () => {
    expect(from('http://a:9464', 'http://a:9464/', 'https://b/sidelight')).toEqual([
      'http://a:9464/',
      'https://b/sidelight/',
    ]);
  });

  it.each(['a:9464', 'ftp://a', 'http://me:secret@a', 'http://a/?b', 'http://a/#b', ''])('%j is wrong', (url) => {
    expect(from(url)).toBe('wrong');
  });
});

it.each([
  ['500ms', 500],
  ['60s', 60_000],
  ['15m', 900_000],
  ['1h', 3_600_000],
  ['0s', 0],
  ['60', undefined],
  ['1.5h', undefined],
  ['-1s', undefined],
  ['1h30m', undefined],
  ['1 s', undefined],
])('the duration %j is %s ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

it.each([
  [0, '0s'],
  [440, '0.4s'],
  [9949, '9.9s'],
  [59_400, '59s'],
  [90_000, '1m 30s'],
  [3_600_000, '1h'],
  [3_900_000, '1h 5m'],
  [183_600_000, '2d 3h'],
  [-5, '0s'],
  [Number.POSITIVE_INFINITY, 'ever'],
])('%d ms are written %j', (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

it.each([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1 kB'],
  [3_141_592, '3.1 MB'],
  [123_456_789, '123 MB'],
  [999_600, '1 MB'],
])('%d bytes are written %j', (bytes, text) => {
  expect(bytesText(bytes)).toBe(text);
});
