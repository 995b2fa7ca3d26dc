// The whole configuration: one schema per floor, joined here. Every field has a default and one sentence, from which
// docs/configuration.md is made.

import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { modelConfig } from '@millrace/model';
import { describeIssues, messageOf, type SchemaIssue } from '@millrace/protocol';
import { harness, sandboxConfig } from '@millrace/sandbox';
import { gymConfig, judgeConfig, outsideConfig } from '@millrace/scenarios';
import { retentionConfig, storeConfig } from '@millrace/store';
import { inferenceConfig, pipelineConfig } from '@millrace/worker';
import { z } from 'zod';
import { samplingConfig } from './batches/sampling-config.ts';
import { machineConfig } from './cluster/machine-config.ts';
import { slurmConfig } from './cluster/slurm-config.ts';
import { httpConfig } from './http/request/http-config.ts';
import { tracingConfig } from './tracing-config.ts';

export const serviceConfig = z.strictObject({
  data: z.string().min(1).default('.millrace').describe('Folder of the store, on a disk of this machine; not on a network file system.'),
  run: z
    .string()
    .min(1)
    .default(() => join(tmpdir(), `millrace-${process.getuid?.() ?? 0}`))
    .describe('Folder of the running sandboxes: a short path on a disk of this machine.'),
  model: modelConfig.prefault({}),
  scenarios: z.array(z.string()).default([]).describe('Modules with your own scenarios; each exports `scenario`.'),
  prompts: z
    .string()
    .min(1)
    .optional()
    .describe('Folder with your own prompts and tool descriptions, which replace the built-in ones; `millrace new prompts` writes one.'),
  workers: z.int().min(0).optional().describe('How many worker processes `millrace serve` starts.'),
  retention: retentionConfig.prefault({}),
  store: storeConfig.prefault({}),
  http: httpConfig.prefault({}),
  inference: inferenceConfig.prefault({}),
  pipeline: pipelineConfig.prefault({}),
  machine: machineConfig.prefault({}),
  sampling: samplingConfig.prefault({}),
  sandbox: sandboxConfig.prefault({}),
  tools: outsideConfig.prefault({}),
  harnesses: z
    .array(harness)
    .default([])
    .describe(
      'Your own agent programs, for `agent` of a submission. One with the name of a built-in one replaces it. See docs/harnesses.md.',
    ),
  judge: judgeConfig.prefault({}),
  gym: gymConfig.prefault({}),
  tracing: tracingConfig.prefault({}),
  slurm: slurmConfig.prefault({}),
});

export type ServiceConfig = z.infer<typeof serviceConfig>;

/**
 * Reads a JSON file over `base`, applies `overrides` (by dotted name), and checks the result. Throws an Error that names file and
 * field.
 */
export function readConfig(
  path: string | undefined,
  overrides: Readonly<Record<string, unknown>> = {},
  base: Readonly<Record<string, unknown>> = {},
): ServiceConfig {
  const file: unknown = path === undefined ? {} : parseFile(path);
  if (!isObject(file)) throw new Error(`${path} does not hold a JSON object`);
  const raw = mergeFields(base, file);
  for (const [name, value] of Object.entries(overrides)) if (value !== undefined) setField(raw, name.split('.'), value);
  const parsed = serviceConfig.safeParse(raw);
  if (!parsed.success)
    throw new Error(`the configuration${path ? ` in ${path}` : ''} is wrong: ${describeConfig(parsed.error.issues, raw)}`);
  return parsed.data;
}

function describeConfig(issues: readonly SchemaIssue[], value: unknown): string {
  return describeIssues(issues, { value, schema: serviceConfig });
}

function parseFile(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new Error(`the configuration ${path} could not be read: ${messageOf(error)}`);
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Fields of `over` win; objects are merged, lists are replaced. */
function mergeFields(under: Readonly<Record<string, unknown>>, over: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...under };
  for (const [name, value] of Object.entries(over)) {
    const below = merged[name];
    merged[name] = isObject(below) && isObject(value) ? mergeFields(below, value) : value;
  }
  return merged;
}

function setField(target: object, [head, ...rest]: readonly string[], value: unknown): void {
  if (head === undefined) return;
  if (rest.length === 0) return void Reflect.set(target, head, value);
  const inner: unknown = Reflect.get(target, head);
  const next = typeof inner === 'object' && inner !== null ? inner : {};
  Reflect.set(target, head, next);
  setField(next, rest, value);
}
