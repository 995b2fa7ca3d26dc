// The texts that a model reads and a user may replace: the prompts of the built-in scenarios, and the descriptions of the built-in tools.
// A folder of the user's holds one file for each text that it replaces; a file that replaces nothing is refused by name.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeIssues, messageOf, type ToolSpec } from '@millrace/protocol';
import { z } from 'zod';
import { type ToolName, toolNames } from './tool-names.ts';
import { openTool } from './tools.ts';

/** The default texts by the names of their files, without `.md`. */
export const promptTexts = {
  math: '{{question}}\n\nPut your final answer into \\boxed{}.',
  'math-tools':
    'Solve this problem.\n\n{{question}}\n\nYou have these tools: {{tools}}. Compute with code where it helps, and check the result before you answer. When you are sure, {{ending}}.',
  swe: 'The repository {{repo}} is in {{workdir}}. Solve this issue by changing its source code. Tests that you cannot see decide whether it is solved; changes of existing tests and of the configuration of the test run are undone before they run.\n\n<issue>\n{{problem_statement}}\n</issue>\n\nWhen you are done, {{ending}}. What you left in the repository then is the result.',
  shell: 'You work in a Linux shell, in {{workspace}}.{{use}}{{ending}}',
} as const;
type PromptName = keyof typeof promptTexts;

const toolText = z.strictObject({
  description: z.string().min(1).optional(),
  parameters: z.record(z.string(), z.string().min(1)).default({}),
});
type ToolText = z.infer<typeof toolText>;

export class Prompts {
  readonly #texts: ReadonlyMap<PromptName, string>;
  readonly #tools: ReadonlyMap<ToolName, ToolText>;

  constructor(texts: ReadonlyMap<PromptName, string> = new Map(), tools: ReadonlyMap<ToolName, ToolText> = new Map()) {
    this.#texts = texts;
    this.#tools = tools;
  }

  /** The text with its `{{names}}` filled in. Text that is filled in is never searched for names. */
  render(name: PromptName, values: Readonly<Record<string, string>>): string {
    return (this.#texts.get(name) ?? promptTexts[name]).replace(/\{\{(\w+)\}\}/g, (whole, key: string) => values[key] ?? whole);
  }

  /** The specification of a built-in tool, in the user's words where there are any. */
  describe(spec: ToolSpec): ToolSpec {
    const known = toolNames.find((name) => name === spec.name);
    const text = known && this.#tools.get(known);
    if (!text) return spec;
    const properties = Object.entries(propertiesOf(spec)).map(([name, property]) => {
      const description = text.parameters[name];
      return [name, description === undefined ? property : { ...property, description }];
    });
    const description = text.description ?? spec.description;
    return { ...spec, description, parameters: { ...spec.parameters, properties: Object.fromEntries(properties) } };
  }
}

/** Throws an Error that names the file and says what to do. */
export function readPrompts(folder: string): Prompts {
  if (!existsSync(folder)) throw new Error(`${folder}: there is no such folder; \`prompts\` names the folder with your own prompts`);
  const texts = new Map<PromptName, string>();
  for (const file of listFiles(folder)) if (file !== 'tools') texts.set(...readText(folder, file));
  const tools = new Map<ToolName, ToolText>();
  const inner = join(folder, 'tools');
  for (const file of existsSync(inner) ? listFiles(inner) : []) tools.set(...readToolText(inner, file));
  return new Prompts(texts, tools);
}

function listFiles(folder: string): string[] {
  return readdirSync(folder).filter((name) => !name.startsWith('.'));
}

function readText(folder: string, file: string): [PromptName, string] {
  const path = join(folder, file);
  const names = Object.keys(promptTexts) as PromptName[];
  const name = names.find((one) => file === `${one}.md`);
  if (!name)
    throw new Error(`${path}: no prompt has this file; there are ${names.map((one) => `${one}.md`).join(', ')} and tools/NAME.json`);
  const text = readFileSync(path, 'utf8').trimEnd();
  const allowed = namesIn(promptTexts[name]);
  const wrong = namesIn(text).find((one) => !allowed.includes(one));
  if (wrong !== undefined)
    throw new Error(`${path}: {{${wrong}}} is not known here; it may use ${allowed.map((one) => `{{${one}}}`).join(', ')}`);
  return [name, text];
}

function readToolText(folder: string, file: string): [ToolName, ToolText] {
  const path = join(folder, file);
  const name = toolNames.find((one) => file === `${one}.json`);
  if (!name) throw new Error(`${path}: no built-in tool has this file; there are ${toolNames.map((one) => `${one}.json`).join(', ')}`);
  const parsed = toolText.safeParse(readJson(path));
  if (!parsed.success) throw new Error(`${path}: ${describeIssues(parsed.error.issues)}`);
  const known = Object.keys(propertiesOf(openTool(name).spec));
  const wrong = Object.keys(parsed.data.parameters).find((one) => !known.includes(one));
  if (wrong !== undefined) throw new Error(`${path}: ${name} has no parameter ${wrong}; it has ${known.join(', ') || 'none'}`);
  return [name, parsed.data];
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new Error(`${path}: it is not JSON: ${messageOf(error)}`, { cause: error });
  }
}

function namesIn(text: string): string[] {
  return Array.from(text.matchAll(/\{\{(\w+)\}\}/g), ([, name = '']) => name);
}

function propertiesOf({ parameters }: ToolSpec): Readonly<Record<string, object>> {
  return z.looseObject({ properties: z.record(z.string(), z.looseObject({})).default({}) }).parse(parameters).properties;
}

/** Every text as a file of its folder, for a user to start from. */
export function renderPromptFiles(): Readonly<Record<string, string>> {
  const texts = Object.entries(promptTexts).map(([name, text]) => [`${name}.md`, `${text}\n`]);
  const tools = toolNames.map((name) => {
    const { spec } = openTool(name);
    const parameters = Object.entries(propertiesOf(spec)).flatMap(([key, property]) => {
      const description: unknown = Reflect.get(property, 'description');
      return typeof description === 'string' ? [[key, description]] : [];
    });
    return [
      `tools/${name}.json`,
      `${JSON.stringify({ description: spec.description, parameters: Object.fromEntries(parameters) }, null, 2)}\n`,
    ];
  });
  return Object.fromEntries([...texts, ...tools]);
}
