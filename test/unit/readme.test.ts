import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { routes } from '../../src/admin/routes.ts';
import { metrics } from '../../src/emit/names.ts';
import { prometheusName } from '../../src/emit/prometheus-name.ts';

const root = new URL('../../', import.meta.url);
const pages = [
  'README.md',
  'CHANGELOG.md',
  ...readdirSync(new URL('docs/', root))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`),
  'monitoring/grafana/README.md',
  ...['decisions', 'doctor', 'reference', 'runbooks'].flatMap((folder) =>
    readdirSync(new URL(`docs/${folder}/`, root)).map((file) => `docs/${folder}/${file}`),
  ),
];
const text = (page: string) => readFileSync(new URL(page, root), 'utf8');

describe.each(pages)('%s', (page) => {
  it('links to files that are there', () => {
    const links = Array.from(text(page).matchAll(/\]\((?!https?:)([^)#]+)/g), ([, link = '']) => link);
    expect(links.filter((link) => !existsSync(new URL(link, new URL(page, root))))).toEqual([]);
  });

  it('names only metrics that exist', () => {
    const known = Object.values(metrics).map(prometheusName);
    const named = Array.from(
      text(page).matchAll(/\b(sidelight_[a-z_]+(?:_total|_seconds|_bytes))\b/g),
      ([name]) => name,
    );
    expect(named.filter((name) => !known.includes(name))).toEqual([]);
  });
});

it('the README names every path of the HTTP port', () => {
  for (const path of routes.keys()) expect(text('README.md')).toContain(`\`${path}`);
});
