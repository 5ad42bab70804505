import type { ResponseFacts, Tags } from '../model/tag.ts';
import type { PinVerdict } from '../model/verdict.ts';

/** What the tagger knows of a request in profile `tag`, where it alone speaks: the last attempt, up to the response's head. */
export interface TaggedResponse {
  facts: ResponseFacts;
  tags: Tags;
  pin: PinVerdict;
}
