import { describeSchema, type FieldDescription, schemaRoot } from './describe.ts';

/** docs/reference/config.md: every field, one table per section. */
export function configReference(): string {
  const fields = describeSchema();
  const parts = Object.entries(schemaRoot.properties ?? {}).map(([key, node]) => {
    const own = fields.filter(({ path }) => path === key || path.startsWith(`${key}.`) || path.startsWith(`${key}[`));
    return [`## ${key}`, '', node.meaning ?? '', '', ...table(own)].join('\n');
  });
  return `${[head, ...parts].join('\n\n')}\n`;
}

const head = `# Config

Made from the schema in \`src/config/schema.ts\`; \`test/unit/config-reference.test.ts\` holds the two together.

A YAML file, given with \`--config FILE\`. Everything is optional. Unknown keys are errors. \`--check\` tells every error
at once and exits with 2; \`--print-config\` prints the config in force with these texts as comments.`;

function table(fields: readonly FieldDescription[]): string[] {
  return [
    '| field | type | default | unit | meaning |',
    '|---|---|---|---|---|',
    ...fields.map(
      (field) => `| ${[code(field.path), field.type, fallback(field), field.unit ?? '', field.meaning].join(' | ')} |`,
    ),
  ];
}

function fallback(field: FieldDescription): string {
  if (field.required) return 'required';
  return field.default === undefined ? 'absent' : code(JSON.stringify(field.default));
}

function code(text: string): string {
  return `\`${text}\``;
}
