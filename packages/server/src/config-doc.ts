// The configuration as a page for people, made from the schemas: docs/configuration.md.

import { z } from 'zod';
import { jobResources, slurmRoles } from './cluster/slurm-config.ts';
import { serviceConfig } from './config.ts';

interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
}

/** Those that most deployments set, in the order in which one meets them. */
const usual = [
  'model.tokenizer',
  'data',
  'workers',
  'scenarios',
  'http.host',
  'http.keys',
  'sandbox.driver',
  'sandbox.limits.memoryMiB',
  'pipeline.runSlots',
  'store.address',
];

export function renderConfigDoc(): string {
  const schema = z.toJSONSchema(serviceConfig, { io: 'input', unrepresentable: 'any' }) as JsonSchema;
  const parts = Object.entries(schema.properties ?? {});
  const fields = parts.flatMap(([name, field]) => listFields(name, field));
  const single = parts.filter(([, { properties }]) => properties === undefined).map(([name]) => name);
  return [
    '# Configuration',
    '',
    'A JSON file for `millrace serve --config FILE`. Every field has a default, so the file holds only what you change. `millrace doctor --config FILE`',
    'checks it, and an unknown field is refused by name. Options of the command line win over the file.',
    '',
    'A dotted name is a field of an object: `pipeline.runSlots` is `{"pipeline": {"runSlots": 64}}`.',
    ...renderTable(
      'The ten to know',
      usual.flatMap((name) => fields.filter(([one]) => one === name)),
    ),
    ...renderTable(
      'The service',
      fields.filter(([name]) => single.includes(name)),
    ),
    ...parts.flatMap(([name, field]) => (field.properties === undefined ? [] : renderTable(name, listFields(name, field)))),
    '',
  ].join('\n');
}

type Field = readonly [name: string, field: JsonSchema];

function listFields(name: string, field: JsonSchema): Field[] {
  if (!field.properties) return [[name, field]];
  return Object.entries(field.properties).flatMap(([inner, value]) => listFields(`${name}.${inner}`, value));
}

function renderTable(title: string, fields: readonly Field[]): string[] {
  const rows = fields
    .filter(([name]) => !isOfRole(name))
    .map(([name, field]) => `| \`${name}\` | ${renderDefault(name, field.default)} | ${field.description ?? ''} |`);
  const roles = `Each of ${ofJobs.join(', ')} can also be set for one kind of job, under ${slurmRoles.map((role) => `\`slurm.${role}\``).join(', ')}.`;
  return ['', `## ${title}`, ...(title === 'slurm' ? ['', roles] : []), '', '| field | default | what it does |', '|---|---|---|', ...rows];
}

const ofJobs = Object.keys(jobResources).map((name) => `\`${name}\``);

/** What a job asks for is described once, not for each role. */
function isOfRole(name: string): boolean {
  const [, role, field = ''] = /^slurm\.(\w+)\.(\w+)$/.exec(name) ?? [];
  return role !== undefined && field in jobResources;
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
