import { constants } from 'node:os';

/** The exit code that a shell reports for a program that this signal ended; 128 for what is no signal. */
export function signalCode(name: string): number {
  return 128 + (Object.entries(constants.signals).find(([signal]) => signal === name)?.[1] ?? 0);
}
