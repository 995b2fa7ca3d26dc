// The configuration described for people, made from the schemas: what docs/configuration.md holds.

import { z } from 'zod';
import { serviceConfig } from './config.ts';

interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
}

export function renderConfigDoc(): string {
  const schema = z.toJSONSchema(serviceConfig, { io: 'input', unrepresentable: 'any' }) as JsonSchema;
  const rows = Object.entries(schema.properties ?? {}).flatMap(([name, field]) => renderField(name, field));
  return [
    '# Configuration',
    '',
    'A JSON file for `--config`; every field has a default. The file is checked as a whole, and an unknown field is refused by its name.',
    '',
    '| field | default | what it does |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

function renderField(name: string, field: JsonSchema): string[] {
  if (field.properties) return Object.entries(field.properties).flatMap(([inner, value]) => renderField(`${name}.${inner}`, value));
  return [`| \`${name}\` | ${renderDefault(name, field.default)} | ${field.description ?? ''} |`];
}

/** What depends on the machine is said in words. */
function renderDefault(name: string, value: unknown): string {
  if (name === 'run') return '`millrace-<uid>` in the temporary folder';
  return value === undefined ? 'none' : `\`${JSON.stringify(value)}\``;
}
