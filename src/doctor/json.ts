/** A JSON or YAML value that is an object. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What is at the end of a path of keys; `undefined` where any of them is missing. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const key of path) {
    if (!isObject(found)) return undefined;
    found = found[key];
  }
  return found;
}

/** The object at a path; an empty one where there is none. */
export function objectAt(value: unknown, ...path: readonly string[]): JsonObject {
  const found = at(value, ...path);
  return isObject(found) ? found : {};
}

/** The list at a path; an empty one where there is none. */
export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** The objects of the list at a path. */
export function objectsAt(value: unknown, ...path: readonly string[]): JsonObject[] {
  return listAt(value, ...path).filter(isObject);
}

/** The text at a path; `''` where there is none: protobuf leaves an empty text out. */
export function textAt(value: unknown, ...path: readonly string[]): string {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : '';
}

/** The number at a path, also as `{value: 1}` or as text; 0 where there is none: protobuf leaves a 0 out. */
export function numberAt(value: unknown, ...path: readonly string[]): number {
  const found = at(value, ...path);
  const bare = isObject(found) ? found['value'] : found;
  const parsed = typeof bare === 'string' || typeof bare === 'number' ? Number(bare) : 0;
  return Number.isFinite(parsed) ? parsed : 0;
}

/** Whether there is `true` at a path, also as `{value: true}`. */
export function isTrueAt(value: unknown, ...path: readonly string[]): boolean {
  const found = at(value, ...path);
  return found === true || (isObject(found) && found['value'] === true);
}

/** A protobuf duration (`0.2s`) in milliseconds; `undefined`: there is none, or it is none. */
export function durationMsAt(value: unknown, ...path: readonly string[]): number | undefined {
  const seconds = /^(\d+(?:\.\d+)?)s$/.exec(textAt(value, ...path))?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}

/** The last word of `@type`: `ExternalProcessor`; `''` where there is none. */
export function typeOf(value: unknown): string {
  return textAt(value, '@type').split('.').at(-1) ?? '';
}

/** Every object of that type in a value, however deep: a filter may be wrapped in a matcher. */
export function findTyped(value: unknown, type: string): JsonObject[] {
  if (Array.isArray(value)) return value.flatMap((one) => findTyped(one, type));
  if (!isObject(value)) return [];
  if (typeOf(value) === type) return [value];
  return Object.values(value).flatMap((one) => findTyped(one, type));
}

/** One text for equal values, whatever the order of their keys. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) =>
    isObject(one) ? Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1))) : one,
  );
}

/**
 * The same value with its field names as protobuf spells them: `typedConfig` is `typed_config`. Envoy and Istio take both.
 * Names with other letters than those of a field (labels, types, clusters) stay.
 */
export function snakeCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeCase);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [
      /^[a-z][a-zA-Z0-9]*$/.test(key) ? key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) : key,
      snakeCase(one),
    ]),
  );
}
