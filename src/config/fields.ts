import { z } from 'zod';
import { parseHostPort } from '../lib/host-port.ts';
import { isSocketPath, longestSocketPath } from '../lib/socket-path.ts';

/** What every field says of itself, next to its type and default. */
export interface FieldFacts {
  /** One sentence: what it does, and what goes wrong at the edges. */
  meaning: string;
  /** `ms`, `bytes`, a counted thing; absent where there is none. */
  unit?: string;
  /** The type in words, where the schema's own type says too little. */
  kind?: string;
  /** Never printed. */
  secret?: boolean;
}

/** In ms. */
export const second = 1000;
export const minute = 60 * second;
export const day = 24 * 60 * minute;

/** Checks between fields run even if a field is wrong, so that every problem is told at once. */
export const isObject = ({ value }: { value: unknown }): boolean => typeof value === 'object' && value !== null;

/** A whole number with a default. */
export function whole(fallback: number, [min, max]: [number, number], unit: string, meaning: string) {
  return z.int().min(min).max(max).default(fallback).meta({ unit, meaning });
}

/** A whole number that may be absent. */
export function wholeOrAbsent([min, max]: [number, number], unit: string, meaning: string) {
  return z.int().min(min).max(max).optional().meta({ unit, meaning });
}

export function flag(fallback: boolean, meaning: string) {
  return z.boolean().default(fallback).meta({ meaning });
}

export function oneOf<const T extends readonly [string, ...string[]]>(values: T, fallback: T[number], meaning: string) {
  // zod's type of a default loses the tuple; the value is one of `values` by the signature.
  return z
    .enum(values)
    .default(fallback as never)
    .meta({ meaning });
}

/** `host:port` or `[v6]:port`. */
export function address(fallback: string, meaning: string) {
  return z
    .string()
    .refine((text) => parseHostPort(text) !== undefined, 'host:port or [v6]:port, port 0 to 65535')
    .default(fallback)
    .meta({ meaning, kind: 'host:port' });
}

/** `host:port`, `[v6]:port`, or `unix:` and an absolute path. */
export function addressOrSocket(fallback: string, meaning: string) {
  const isSocket = (text: string) => text.startsWith('unix:') && isSocketPath(text.slice('unix:'.length));
  return z
    .string()
    .refine(
      (text) => parseHostPort(text) !== undefined || isSocket(text),
      `host:port, [v6]:port, port 0 to 65535, or unix:/path, of ${longestSocketPath} bytes at most`,
    )
    .default(fallback)
    .meta({ meaning, kind: 'host:port or unix:/path' });
}

export function url(meaning: string) {
  return z
    .url({ protocol: /^https?$/ })
    .optional()
    .meta({ meaning, kind: 'http(s) URL' });
}

const hostName =
  /^(?=.{1,253}$)([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.?$/;

export function dnsName(meaning: string) {
  return z.string().regex(hostName).optional().meta({ meaning, kind: 'DNS name' });
}

/** An object whose unknown keys are errors and whose absence means all defaults. */
export function section<T extends z.ZodRawShape>(shape: T, meaning: string) {
  return z
    .strictObject(shape)
    .prefault({} as never)
    .meta({ meaning });
}
