import { readdirSync } from 'node:fs';
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { exitCodes } from '../../src/cli/doctor/run.ts';
import { createProgram, type ProgramOptions } from '../../src/cli/program.ts';
import { catalogue, type FindingId, findingIds, severities } from '../../src/doctor/catalogue.ts';
import { finding } from '../../src/doctor/finding.ts';
import { readDoc, tableOf } from '../support/doc-tables.ts';
import { doctorReport } from '../support/run-doctor.ts';

const index = readDoc('doctor/README.md');

it('every finding has a page, and every page a finding', () => {
  const files = readdirSync(new URL('../../docs/doctor/', import.meta.url)).filter((file) => file !== 'README.md');
  expect(files.toSorted()).toEqual(findingIds.map((id) => `${id}.md`).toSorted());
});

describe.each(findingIds)('docs/doctor/%s.md', (id: FindingId) => {
  const page = readDoc(`doctor/${id}.md`);
  const { title, severity } = catalogue[id];

  it('says what the code says', () => {
    expect(page.split('\n').slice(0, 4)).toEqual([`# ${title}`, '', `\`${id}\` · ${severity}`, '']);
    expect(page.match(/^## .*$/gm)).toEqual(['## How to confirm', '## What to change']);
    expect(finding(id, { where: '', evidence: '' }).page).toBe(`docs/doctor/${id}.md`);
  });

  it('is in the index', () => expect(index).toContain(`| [${id}](${id}.md) | ${severity} | ${title} |`));
});

it('the index has no row of a finding that is not there', () => {
  const rows = Array.from(index.matchAll(/^\| \[([a-z0-9-]+)\]/gm), ([, id = '']) => id);
  expect(new Set(rows)).toEqual(new Set(findingIds));
  expect(rows).toHaveLength(findingIds.length);
});

it('the index has every option and exit code', () => {
  const program = createProgram({ version: '0' } as ProgramOptions, () => undefined);
  const command = program.commands.find((one) => one.name() === 'doctor') ?? new Command();
  const options = command.options.map(({ long }) => `\`${long}\``).filter((long) => long !== '`--help`');
  expect(tableOf(index, ['option', 'default', 'meaning']).map(([option]) => option)).toEqual(options);
  expect(tableOf(index, ['code', 'meaning']).map(([code]) => Number(code))).toEqual(Object.values(exitCodes));
});

it('the index has every field that --json prints at the top', async () => {
  const report = await doctorReport(['/nowhere.yaml']);
  const fields = tableOf(index, ['field', 'meaning']).map(([field = '']) => field.replaceAll(/[`[\]]/g, ''));
  expect(fields.toSorted()).toEqual(Object.keys(report).toSorted());
});

it('severities are the three of the exit codes', () => {
  expect(new Set(Object.values(catalogue).map(({ severity }) => severity))).toEqual(new Set(severities));
});
