import { describe, expect, it } from 'vitest';
import * as words from '../../page/words.js';
import { drainStates } from '../../src/judge/drain-facts.ts';
import { pinReasons } from '../../src/model/advice.ts';
import { clearedHows } from '../../src/model/pin-life.ts';
import { responseFlags } from '../../src/model/response-flag.ts';
import { causes, outcomes, pins, pinUnknownReasons } from '../../src/model/verdict.ts';

describe('the page has words for', () => {
  it.each([
    ['every outcome', words.outcomeWords, outcomes],
    ['a sign of every outcome', words.outcomeSigns, outcomes],
    ['every cause', words.causeWords, causes],
    ['every pin', words.pinWords, pins],
    ['every reason why a pin is unknown', words.unknownPinWords, pinUnknownReasons],
    ['every reason of a pin', words.pinReasonWords, pinReasons],
    ['every way in which a pin is over', words.clearedWords, clearedHows],
    ['everything that may be said of a drain', words.drainWords, drainStates],
    ['every response flag', words.flagWords, responseFlags],
  ])('%s, and for no other', (_, texts, known) => {
    expect(Object.keys(texts).toSorted()).toEqual([...known].toSorted());
  });
});
