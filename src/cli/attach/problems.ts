import { shortText } from '../../lib/short-text.ts';

/** What is wrong with a command line, all of it, in words. */
export class Problems {
  readonly lines: string[] = [];

  /** A value that is none: tells it, and gives `undefined` in its place. */
  found(flag: string, value: string, expected: string): undefined {
    this.lines.push(`${flag}: found ${shortText(value)}: expected ${expected}`);
  }

  /** Flags that do not go together, or one that is missing. */
  say(line: string): undefined {
    this.lines.push(line);
  }
}
