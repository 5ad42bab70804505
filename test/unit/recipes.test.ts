import { describe, expect, it } from 'vitest';
import { pinSpanAttributes, spanAttributes } from '../../src/emit/attributes.ts';
import { keptReasons } from '../../src/emit/spans/keep.ts';
import { causes, outcomes, pins } from '../../src/model/verdict.ts';
import { jaegerQuery, recipes } from '../support/recipes.ts';

/** The closed sets that a search may name. */
const closed: Record<string, readonly string[]> = {
  'sidelight.outcome': outcomes,
  'sidelight.cause': causes,
  'sidelight.pin': pins,
  'sidelight.kept_reason': keptReasons,
};

describe.each(recipes())('the search for $searchFor', (recipe) => {
  it('has in its query what its columns say', () => {
    expect(recipe.query).toBe(jaegerQuery(recipe));
  });

  it('asks for attributes that spans have, with values that they take', () => {
    const tags = Object.entries(recipe.tags);
    expect(tags.length).toBeGreaterThan(0);
    for (const [key, value] of tags) {
      expect([...Object.keys(spanAttributes), ...Object.keys(pinSpanAttributes)]).toContain(key);
      expect(closed[key] ?? [value]).toContain(value);
    }
  });
});
