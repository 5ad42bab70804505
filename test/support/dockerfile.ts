/** A line of a Dockerfile: `COPY` and what is after it. */
interface Instruction {
  word: string;
  rest: string;
}

/** A stage: what is between two `FROM`. */
export interface Stage {
  from: string;
  /** `''`: the last one. */
  name: string;
  instructions: Instruction[];
}

/** Reads the part of the syntax that ours uses: no heredocs, no variables, one line each. */
export function parseDockerfile(text: string): Stage[] {
  const stages: Stage[] = [];
  for (const line of text.split('\n')) {
    const [, word = '', rest = ''] = /^([A-Z]+) (.+)$/.exec(line) ?? [];
    const [, from, name = ''] = /^FROM (\S+)(?: AS (\S+))?$/.exec(line) ?? [];
    if (from !== undefined) stages.push({ from, name, instructions: [] });
    else if (word !== '') stages.at(-1)?.instructions.push({ word, rest });
    else if (line !== '' && !line.startsWith('#')) throw new Error(`not understood: ${line}`);
  }
  return stages;
}

/** What follows this word in a stage, where it is there once. */
export function only({ instructions }: Stage, word: string): string {
  const [found, ...more] = instructions.filter((each) => each.word === word);
  if (found === undefined || more.length > 0) throw new Error(`${word} is not there once`);
  return found.rest;
}
