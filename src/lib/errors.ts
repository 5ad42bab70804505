import { shortText } from './short-text.ts';

/** Every code, with what it means and what to do. docs/reference/errors.md is made of this list. */
export const errorCatalogue = {
  config_unreadable: {
    meaning: 'The config file cannot be read.',
    hint: 'Check the path given with --config and its permissions.',
  },
  config_invalid: {
    meaning: 'The config does not fit the schema.',
    hint: 'Compare with docs/reference/config.md, or with what --print-config prints.',
  },
  option_invalid: {
    meaning: 'A command line option or an environment variable has a value that is not allowed.',
    hint: 'See --help for the options, and the README for the variables that are obeyed.',
  },
  listen_failed: {
    meaning: 'An address cannot be listened on.',
    hint: 'Another process may hold the port, or the address is not one of this machine.',
  },
  proto_unreadable: {
    meaning: 'The protobuf definitions cannot be loaded.',
    hint: 'The package is not whole: install it again.',
  },
  file_unreadable: {
    meaning: 'A file that is watched cannot be read.',
    hint: 'Check the path and its permissions. What was read before is kept until it is stale.',
  },
  file_invalid: {
    meaning: 'A file that is watched does not have the expected content.',
    hint: 'Put right the lines that are named. What was read before is kept until it is stale.',
  },
  dns_failed: {
    meaning: 'A name server gave no usable answer.',
    hint: 'Check discovery.dns.servers. What was known before is kept until it is stale.',
  },
  kubernetes_failed: {
    meaning: 'The Kubernetes API server gave no usable answer.',
    hint: 'Check that it can be reached, the token, and that its account may list and watch endpointslices. What was known before is kept until it is stale.',
  },
  envoy_admin_failed: {
    meaning: "A proxy's admin interface gave no usable answer.",
    hint: 'Check discovery.envoyAdmin.urls, and that the interface can be reached. What was known before is kept until it is stale.',
  },
  state_file_set_aside: {
    meaning: 'What was kept over the restart cannot be used; the file was renamed.',
    hint: 'Nothing is lost but what was known before the start. Look at the renamed file, or delete it.',
  },
  state_file_failed: {
    meaning: 'What is known cannot be kept over a restart.',
    hint: 'Check discovery.stateFile, that its folder exists and can be written to, and the space left.',
  },
  bound_reached: {
    meaning: 'A bound of the config was reached; what is over it was refused.',
    hint: 'Raise the bound that is named, if there is memory for it.',
  },
  internal: {
    meaning: 'Something happened that should not.',
    hint: 'This is a bug: please report it with the log line.',
  },
} as const satisfies Record<string, { meaning: string; hint: string }>;

export type ErrorCode = keyof typeof errorCatalogue;

/** What was wrong, as its user needs it. */
export interface ErrorDetails {
  /** Where: a config path, a file, an address. */
  path?: string | undefined;
  /** What was found there; absent where nothing was, or where it is secret. */
  value?: unknown;
  /** What should have been there, in words. */
  expected?: string | undefined;
  /** Replaces the catalogue's hint. */
  hint?: string | undefined;
  cause?: unknown;
}

/** The one error class. Its message says where, what was found and what was expected; `hint` says what to do. */
export class SidelightError extends Error {
  override readonly name = 'SidelightError';
  readonly code: ErrorCode;
  readonly hint: string;

  constructor(code: ErrorCode, details: ErrorDetails = {}) {
    super(describe(code, details), details.cause === undefined ? {} : { cause: details.cause });
    this.code = code;
    this.hint = details.hint ?? errorCatalogue[code].hint;
  }
}

function describe(code: ErrorCode, { path, value, expected, cause }: ErrorDetails): string {
  const parts: string[] = [];
  if (path !== undefined) parts.push(path);
  if (value !== undefined) parts.push(`found ${shortText(value)}`);
  if (expected !== undefined) parts.push(`expected ${expected}`);
  if (cause instanceof Error) parts.push(cause.message);
  return parts.length === 0 ? errorCatalogue[code].meaning : parts.join(': ');
}
