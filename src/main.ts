import { readFileSync } from 'node:fs';
import { createProgram } from './cli/program.ts';

// The same relative path from src/ and, in the installed package, from dist/.
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

await createProgram({ version }).parseAsync(process.argv);
