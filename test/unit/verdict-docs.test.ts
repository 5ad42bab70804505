import { expect, it } from 'vitest';
import { contradictions } from '../../src/judge/contradiction.ts';
import { pinReasons } from '../../src/model/advice.ts';
import { incompleteReasons } from '../../src/model/exchange.ts';
import { joinEvents } from '../../src/model/join-event.ts';
import { clearedHows, pinEvents } from '../../src/model/pin-life.ts';
import { attemptResults, causes, outcomes, pins, pinUnknownReasons } from '../../src/model/verdict.ts';
import { readDoc, tableOf } from '../support/doc-tables.ts';

const page = readDoc('reference/verdicts.md');

it.each([
  ['outcome', 'when', outcomes],
  ['why `unknown`', 'meaning', incompleteReasons],
  ['result', 'meaning', attemptResults],
  ['cause', 'meaning', causes],
  ['pin', 'when', pins],
  ['why a pin is `unknown`', 'meaning', pinUnknownReasons],
  ['contradiction', 'meaning', contradictions],
  ['join event', 'meaning', joinEvents],
  ['event', 'meaning', pinEvents],
  ['how it was over', 'meaning', clearedHows],
  ['why it stays', 'the facts | what ends it', pinReasons],
] as const)('every word of "%s" is in docs/reference/verdicts.md, and no other is', (title, second, words) => {
  const documented = tableOf(page, [title, second]).map(([word = '']) => word.replaceAll('`', ''));
  expect(documented.toSorted()).toEqual([...words].toSorted());
});
