import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Answer } from './answer.ts';

/** Kinds of files that the page consists of. */
const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/**
 * What a browser may do with the page: run and ask this port alone, embed nothing, be framed by nobody. Names and paths
 * come from strangers; a script among them would not run.
 */
const pageSecurity = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  // Unlike answers of the API: asked for again, but not sent again.
  'cache-control': 'no-cache',
};

/**
 * The files of the page by their path on the port: `index.html` is `/`, the others `/page/NAME`. `more`: files from
 * elsewhere, by name. Read once, so that no path of a request ever reaches the file system. Throws where one cannot be read.
 */
export function readPage(folder: string, more: Readonly<Record<string, string>>): ReadonlyMap<string, Answer> {
  const own = readdirSync(folder).map((name) => [name, path.join(folder, name)] as const);
  const files = new Map<string, Answer>();
  for (const [name, file] of [...own, ...Object.entries(more)]) {
    const contentType = contentTypes[path.extname(name)];
    if (contentType === undefined) continue;
    const where = name === 'index.html' ? '/' : `/page/${name}`;
    files.set(where, { status: 200, contentType, body: readFileSync(file, 'utf8'), headers: pageSecurity });
  }
  return files;
}
