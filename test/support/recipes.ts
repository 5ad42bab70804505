import { readDoc, tableOf } from './doc-tables.ts';

/** One search of docs/traces.md. */
export interface Recipe {
  searchFor: string;
  service: string;
  operation: string | undefined;
  tags: Record<string, string>;
  /** As Jaeger writes it: `500ms`. */
  minDuration: string | undefined;
  /** As the page has it, encoded. */
  query: string;
}

/** The searches of docs/traces.md, each by what its columns say in words. */
export function recipes(): Recipe[] {
  const rows = tableOf(readDoc('traces.md'), ['search for', 'tags', 'besides', 'query']);
  return rows.map(([searchFor = '', tags = '', besides = '', query = '']) => ({
    searchFor,
    service: 'shop',
    operation: /^operation `(?<name>[^`]+)`$/.exec(besides)?.groups?.['name'],
    tags: Object.fromEntries(
      [...tags.matchAll(/`(?<key>[^`=]+)=(?<value>[^`]+)`/g)].map(([, key, value]) => [key, value]),
    ),
    minDuration: /^min duration `(?<time>[^`]+)`$/.exec(besides)?.groups?.['time'],
    query: query.replaceAll('`', ''),
  }));
}

/** The query that Jaeger takes for a search, both its page and its API. */
export function jaegerQuery({ service, operation, tags, minDuration }: Omit<Recipe, 'searchFor' | 'query'>): string {
  const parts = {
    service,
    ...(operation === undefined ? {} : { operation }),
    tags: JSON.stringify(tags),
    ...(minDuration === undefined ? {} : { minDuration }),
  };
  return Object.entries(parts)
    .map(([key, value]) => `${key}=${encodeURIComponent(value)}`)
    .join('&');
}
