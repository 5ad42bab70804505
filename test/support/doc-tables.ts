import { readFileSync } from 'node:fs';

/** Reads a page under `docs/`. */
export function readDoc(name: string): string {
  return readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
}

/** The rows of the first table whose header is this, each as its cells. */
export function tableOf(page: string, header: readonly string[]): string[][] {
  const lines = page.split('\n');
  const start = lines.indexOf(`| ${header.join(' | ')} |`);
  if (start === -1) throw new Error(`no table ${header.join(', ')}`);
  const rest = lines.slice(start + 2);
  const end = rest.findIndex((line) => !line.startsWith('|'));
  return rest.slice(0, end === -1 ? undefined : end).map((row) =>
    row
      .replace(/^\| ?/, '')
      .replace(/ ?\|$/, '')
      .split(' | ')
      .map((cell) => cell.trim()),
  );
}

/** The query of a fenced block with this title: ```` ```promql TITLE ````. */
export function queryOf(page: string, title: string): string {
  const found = new RegExp('```promql ' + title + '\n(?<query>[^`]*)```').exec(page)?.groups?.['query'];
  if (found === undefined) throw new Error(`no query ${title}`);
  return found.trim();
}
