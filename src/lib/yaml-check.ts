import { type Document, isScalar, LineCounter, type ParsedNode, parseDocument, visit } from 'yaml';
import type { z } from 'zod';
import { nearName } from './near-name.ts';
import { shortText } from './short-text.ts';

/** One thing wrong in a text. */
export interface Problem {
  /** `listen.grpc`, `clusters[0].match`; `''` is the whole text. */
  path: string;
  /** What was found, as short JSON; `undefined`: nothing, or it is secret. */
  value: string | undefined;
  /** What was expected, in words. */
  expected: string;
  /** 1-based; absent where it did not come from a text. */
  line: number | undefined;
}

export type Checked<T> = { ok: true; value: T } | { ok: false; problems: Problem[] };

type Path = readonly PropertyKey[];
type Issue = z.core.$ZodIssue;

export interface CheckOptions {
  /** What belongs at a path, in words. `undefined`: the library's own words. */
  expected?: (path: Path) => string | undefined;
  /** Keys that are known at a path: a near one is suggested for an unknown key. */
  knownKeys?: (path: Path) => readonly string[];
  /** Whose values are never repeated. */
  isSecret?: (path: Path) => boolean;
  /** Laid over what the text says, key by key; lists are replaced whole, `undefined` changes nothing. */
  overrides?: object | undefined;
}

/** Parses a YAML text and checks it. Every problem is told, not only the first. Never throws. */
export function checkYaml<T>(text: string, schema: z.ZodType<T>, options: CheckOptions = {}): Checked<T> {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
  if (document.errors.length > 0) {
    const problems = document.errors.map((error) => ({
      path: '',
      value: undefined,
      expected: `YAML: ${error.message}`,
      line: lines.linePos(error.pos[0]).line,
    }));
    return { ok: false, problems };
  }
  const lineAt = (path: Path): number | undefined => {
    if (at(options.overrides, path) !== undefined) return undefined;
    for (let length = path.length; length > 0; length -= 1) {
      const node = document.getIn(path.slice(0, length), true) as ParsedNode | undefined;
      if (node?.range) return lines.linePos(node.range[0]).line;
    }
    return undefined;
  };
  try {
    const repeated = repeatedKeys(document);
    if (repeated.length > 0) {
      const expected = 'YAML: Map keys must be unique';
      const problems = repeated.map((offset) => ({
        path: '',
        value: undefined,
        expected,
        line: lines.linePos(offset).line,
      }));
      return { ok: false, problems };
    }
    const root: unknown = document.toJS() ?? {};
    return checkValue(isPlainObject(root) ? laidOver(root, options.overrides) : root, schema, options, lineAt);
  } catch (error) {
    // The only throw here is the parser's guard against aliases that multiply.
    return {
      ok: false,
      problems: [{ path: '', value: undefined, expected: `YAML: ${String(error)}`, line: undefined }],
    };
  }
}

/**
 * Where keys begin that their mapping already has. The parser's own check compares each key with all before it: 20,000
 * clusters in an endpoints file held up every stream for 10 s.
 */
function repeatedKeys(document: Document): number[] {
  const repeated: number[] = [];
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (seen.has(key.value)) repeated.push(key.range?.[0] ?? 0);
        seen.add(key.value);
      }
    },
  });
  return repeated;
}

/** Checks a value that did not come from a text. Never throws. */
function checkValue<T>(
  value: unknown,
  schema: z.ZodType<T>,
  options: CheckOptions = {},
  lineAt: (path: Path) => number | undefined = () => undefined,
): Checked<T> {
  const result = schema.safeParse(value);
  if (result.success) return { ok: true, value: result.data };
  const problems = result.error.issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => unknownKey(issue, key, options, lineAt))
      : [wrongValue(issue, value, options, lineAt)],
  );
  return { ok: false, problems };
}

function unknownKey(
  issue: Issue,
  key: string,
  { knownKeys }: CheckOptions,
  lineAt: (path: Path) => number | undefined,
): Problem {
  const known = knownKeys?.(issue.path) ?? [];
  const near = nearName(key, known);
  const path = [...issue.path, key];
  const expected = near === undefined ? `a known key: ${known.join(', ')}` : `a known key, perhaps ${near}`;
  return { path: pathText(path), value: undefined, expected, line: lineAt(path) };
}

function wrongValue(
  issue: Issue,
  root: unknown,
  { expected, isSecret }: CheckOptions,
  lineAt: (path: Path) => number | undefined,
): Problem {
  const found = at(root, issue.path);
  const hidden = found === undefined || isSecret?.(issue.path) === true;
  const words = issue.code === 'custom' ? issue.message : (expected?.(issue.path) ?? issue.message);
  return {
    path: pathText(issue.path),
    value: hidden ? undefined : shortText(found),
    expected: words,
    line: lineAt(issue.path),
  };
}

function laidOver(base: unknown, over: unknown): unknown {
  if (over === undefined) return base;
  if (!isPlainObject(base) || !isPlainObject(over)) return over;
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) merged[key] = laidOver(base[key], value);
  return merged;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function at(root: unknown, path: Path): unknown {
  let value = root;
  for (const key of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

/** `clusters[0].match` */
function pathText(path: Path): string {
  return path
    .map((key, index) => (typeof key === 'number' ? `[${key}]` : `${index === 0 ? '' : '.'}${String(key)}`))
    .join('');
}

/** `line 4: join.lingerMs: found 2: expected a whole number, …` */
export function formatProblem({ path, value, expected, line }: Problem): string {
  return [
    ...(line === undefined ? [] : [`line ${line}`]),
    ...(path === '' ? [] : [path]),
    ...(value === undefined ? [] : [`found ${value}`]),
    `expected ${expected}`,
  ].join(': ');
}
