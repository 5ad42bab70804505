import type { WireStruct } from './wire-types.ts';

/** What Sidelight reads out of a Struct; lists and nested structs are not among it. */
export type PlainValue = string | number | boolean;

/** The plain values of a Struct by their names; texts as they are. */
export function plainValues(struct: WireStruct | undefined): ReadonlyMap<string, PlainValue> {
  const values = new Map<string, PlainValue>();
  for (const [name, value] of Object.entries(struct?.fields ?? {})) {
    const plain = value.stringValue ?? value.numberValue ?? value.boolValue;
    if (plain !== undefined) values.set(name, plain);
  }
  return values;
}

/** A text that is there and not empty, else `undefined`. */
export function textValue(values: ReadonlyMap<string, PlainValue>, name: string): string | undefined {
  const value = values.get(name);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A finite number, else `undefined`. */
export function numberValue(values: ReadonlyMap<string, PlainValue>, name: string): number | undefined {
  const value = values.get(name);
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
