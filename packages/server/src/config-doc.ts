// The configuration as a page for people, made from the schemas: docs/configuration.md.

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
    'A JSON file for `millrace serve --config FILE`. Every field has a default, so the file holds only what you change. `millrace doctor --config FILE`',
    'checks it, and an unknown field is refused by name. Options of the command line win over the file.',
    '',
    'A dotted name is a field of an object: `pipeline.runSlots` is `{"pipeline": {"runSlots": 64}}`.',
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

/** Defaults that depend on who asks are given as the rule, so that the page is the same for everyone. */
const rules: Readonly<Record<string, string>> = {
  run: '`$TMPDIR/millrace-$UID`, where `$TMPDIR` is `/tmp` unless set',
  'sandbox.images': '`$TMPDIR/millrace-images-$UID`',
  workers: 'one per core, at most 8',
  'slurm.folder': '`~/.millrace/slurm`',
  'slurm.data': '`$TMPDIR/millrace-store-$UID`',
  'slurm.temp': '`$TMPDIR`',
};

function renderDefault(name: string, value: unknown): string {
  const rule = rules[name];
  if (rule !== undefined) return rule;
  return value === undefined ? 'none' : `\`${JSON.stringify(value)}\``;
}
