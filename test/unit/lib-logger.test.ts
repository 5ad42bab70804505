import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { SidelightError } from '../../src/lib/errors.ts';
import { createLogger, type Logger } from '../../src/lib/logger.ts';

let nowMs = Date.UTC(2030, 0, 1);
let lines: Record<string, unknown>[] = [];
let logger: Logger;

beforeEach(() => {
  vi.useFakeTimers();
  nowMs = Date.UTC(2030, 0, 1);
  lines = [];
  logger = createLogger({
    level: 'info',
    linesPerSecond: 2,
    now: () => nowMs,
    destination: { write: (line) => lines.push(JSON.parse(line)) },
  });
});

afterEach(() => {
  vi.useRealTimers();
});

test('a line is JSON with level, time, event and fields', () => {
  logger.info('dns.changed', { host: 'a.example' });
  expect(lines).toEqual([{ level: 'info', time: '2030-01-01T00:00:00.000Z', event: 'dns.changed', host: 'a.example' }]);
});

test('over the rate an event is held back, others are not, and the number is told within a second', () => {
  for (let i = 0; i < 5; i += 1) logger.warn('a');
  logger.warn('b');
  expect(lines.map((line) => line['event'])).toEqual(['a', 'a', 'b']);
  vi.advanceTimersByTime(1000);
  expect(lines.at(-1)).toMatchObject({ event: 'a', suppressed: 3 });
});

test('fields that are given by a function are made for the lines that are written', () => {
  let made = 0;
  for (let i = 0; i < 5; i += 1) logger.info('a', () => ({ made: (made += 1) }));
  expect(made).toBe(2);
  expect(lines).toMatchObject([
    { event: 'a', made: 1 },
    { event: 'a', made: 2 },
  ]);
});

test('in the next second the event passes again, after what was held back', () => {
  for (let i = 0; i < 3; i += 1) logger.warn('a');
  nowMs += 1000;
  logger.warn('a');
  expect(lines.slice(2)).toMatchObject([{ event: 'a', suppressed: 1 }, { event: 'a' }]);
  vi.advanceTimersByTime(5000);
  expect(lines).toHaveLength(4);
});

test('a clock that is set back silences nothing', () => {
  logger.warn('a');
  logger.warn('a');
  nowMs -= 3_600_000;
  logger.warn('a');
  expect(lines).toHaveLength(3);
});

test('what is below the level neither shows nor counts', async () => {
  for (let i = 0; i < 5; i += 1) logger.debug('a');
  await logger.close();
  expect(lines).toEqual([]);
});

test('closing tells what was held back', async () => {
  for (let i = 0; i < 3; i += 1) logger.error('a');
  await logger.close();
  expect(lines.at(-1)).toMatchObject({ event: 'a', suppressed: 1 });
});

test('an error is written with code, hint and causes; long texts are cut', () => {
  const cause = Object.assign(new Error('x'.repeat(5000)), { code: 'ENOENT' });
  logger.error('file.failed', { error: new SidelightError('file_unreadable', { path: 'f', expected: 'it', cause }) });
  expect(lines[0]?.['error']).toMatchObject({ code: 'file_unreadable', cause: { code: 'ENOENT' } });
  expect(JSON.stringify(lines[0]).length).toBeLessThan(2600);
});
