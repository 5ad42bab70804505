import type { Reporter, TestModule } from 'vitest/node';

/** Ends a run with one line `skipped: REASON: TEST` for each test that did not run, and how many these are. */
export default class SkipReporter implements Reporter {
  readonly #print: (line: string) => void;

  /** Vitest passes the options that its configuration names, here none. */
  constructor({ print = console.log }: { print?: (line: string) => void } = {}) {
    this.#print = print;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const lines = skippedTests(modules);
    for (const line of lines) this.#print(`skipped: ${line}`);
    if (lines.length > 0) this.#print(`${lines.length} skipped`);
  }
}

function skippedTests(modules: readonly TestModule[]): string[] {
  return modules.flatMap((module) =>
    [...module.children.allTests('skipped')].map((test) => {
      const result = test.result();
      const reason = result.state === 'skipped' ? result.note : undefined;
      return `${reason ?? 'no reason given'}: ${test.fullName}`;
    }),
  );
}
