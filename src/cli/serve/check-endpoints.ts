import { readFileSync } from 'node:fs';
import { formatProblems } from '../../config/check-config.ts';
import { parseEndpointsFile } from '../../discovery/endpoints-file.ts';

/** What is wrong with the endpoints file, one line each; `undefined`: nothing. Served, a bad file is only told in the log. */
export function endpointsFileProblems(file: string): string | undefined {
  try {
    const parsed = parseEndpointsFile(readFileSync(file, 'utf8'));
    return parsed.ok ? undefined : formatProblems(parsed.problems);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
