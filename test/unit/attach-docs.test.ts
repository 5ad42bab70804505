import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { attachEnds } from '../support/attach.ts';

/* The docs show commands that work, and name every flag. */
const plain = 'test/fixtures/attach/plain.yaml';
const text = (page: string) => readFileSync(page, 'utf8');
const commands = ['README.md', 'docs/attach.md'].flatMap((page) =>
  Array.from(text(page).matchAll(/^bin\/sidelight attach (?<flags>[^#>|\n]*)/gm), (match) => ({
    page,
    flags: (match.groups?.['flags'] ?? '').trim(),
  })),
);

it.each(commands)('$page: attach $flags', ({ flags }) => {
  expect(attachEnds(...flags.replace('envoy.yaml', plain).split(/ +/))).toMatchObject({ code: 0, err: '' });
});

it('shows each target', () => {
  const shown = new Set(commands.map(({ flags }) => /--to (\S+)/.exec(flags)?.[1]));
  expect(shown).toEqual(new Set(['sidecar-outbound', 'waypoint', 'gateway', 'envoy']));
});

it('docs/attach.md names every flag', () => {
  const source = text('src/cli/attach/command.ts');
  const flags = Array.from(source.matchAll(/ption\(\s*'(--(?:no-)?[a-z-]+)/g), ([, flag = '']) => flag);
  expect(flags.length).toBeGreaterThan(15);
  expect(flags.filter((flag) => flag !== '--help' && !text('docs/attach.md').includes(flag))).toEqual([]);
});
