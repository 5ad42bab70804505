import type { Attributes } from '@opentelemetry/api';
import type { Collection } from './collect.ts';
import { exposition, header } from './exposition.ts';
import { labelText } from './label-text.ts';

/** What `/metrics` answers. */
export interface Scrape {
  /** In pieces, each made when it is asked for: a slow reader costs no memory, and a big table blocks nobody for long. */
  body: Iterable<string>;
  contentType: string;
}

const contentType = 'text/plain; version=0.0.4; charset=utf-8';
const pieceLength = 1 << 17;

/** Everything that holds now. `resource` becomes `target_info`. */
export function scrapeOf({ rows }: Collection, resource: Attributes): Scrape {
  return { body: pieces(rows, resource), contentType };
}

function* pieces(rows: Collection['rows'], resource: Attributes): Generator<string> {
  let piece = `${header('target_info', 'Target metadata', 'gauge')}target_info{${labelText(resource)}} 1\n`;
  for (const [metric, list] of rows) {
    for (const text of exposition(metric, list)) {
      piece += text;
      if (piece.length < pieceLength) continue;
      yield piece;
      piece = '';
    }
  }
  if (piece !== '') yield piece;
}
