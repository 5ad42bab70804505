import type { CommanderError } from 'commander';

/** Gathers the values of an option that may be given more than once. */
export function append(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

/** For `exitOverride`: help ends with 0, a command line that is wrong with the command's own code for it. */
export function endWith(exit: (code: number) => void, wrongArguments: number): (error: CommanderError) => never {
  return (error) => {
    exit(error.exitCode === 0 ? 0 : wrongArguments);
    throw error;
  };
}

/** Istio's default. */
export const istioRootNamespace = 'istio-system';
