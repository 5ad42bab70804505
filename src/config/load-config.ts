import { readFileSync } from 'node:fs';
import { SidelightError } from '../lib/errors.ts';
import { type CheckedConfig, type ConfigOverrides, checkConfig } from './check-config.ts';

/**
 * Reads and checks a config file; without a file the defaults, with the overrides laid over them.
 * Throws `config_unreadable`. What is wrong inside the file is returned, not thrown.
 */
export function loadConfig(file: string | undefined, overrides: ConfigOverrides = {}): CheckedConfig {
  return checkConfig(file === undefined ? '' : read(file), overrides);
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new SidelightError('config_unreadable', { path: file, cause });
  }
}
