import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const folder = new URL('../../fixtures/istio/', import.meta.url);

/** What `${…}` in a fixture stands for. */
export interface FixtureValues {
  NET: string;
  SIDELIGHT_PORT: number;
}

/** Writes YAML, given as text or as a fixture's name (`base.yaml`), into the folder, filled in; returns the files' paths. */
export function writeFixtures(dir: string, yaml: readonly string[], values: FixtureValues): string[] {
  return yaml.map((given, index) => {
    const isName = /^[\w-]+\.yaml$/.test(given);
    const text = isName ? readFileSync(new URL(given, folder), 'utf8') : given;
    const file = path.join(dir, `${index}-${isName ? given : 'given.yaml'}`);
    writeFileSync(
      file,
      text.replaceAll(/\$\{(NET|SIDELIGHT_PORT)\}/g, (_, name: keyof FixtureValues) => `${values[name]}`),
    );
    return file;
  });
}
