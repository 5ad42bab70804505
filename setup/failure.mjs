/** A set-up step that cannot go on: its message says what was tried and what to do, so that it is printed without a stack. */
export class SetupFailure extends Error {
  /**
   * @param {string} what what was tried and how it ended, one line
   * @param {string[]} remedies what the reader can do about it, one line each
   * @param {string} [output] what the tried command printed; only its last lines are shown
   */
  constructor(what, remedies, output = '') {
    const said = lastLines(output, 5).map((line) => `    | ${line}`);
    super([what, ...said, ...remedies.map((remedy) => `  → ${remedy}`)].join('\n'));
    this.name = 'SetupFailure';
  }
}

/**
 * @param {string} text
 * @param {number} count
 */
function lastLines(text, count) {
  return text
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .slice(-count);
}
