// Tools that a scenario brings, as its author writes them. The model sees a custom tool as it sees a built-in one.

import type { Schema } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import { z } from 'zod';
import { toolNames } from './tools/tool-names.ts';

export interface CustomToolContext {
  /** The agent's sandbox. Throws if the scenario asked for none. */
  readonly sandbox: Sandbox;
  /** How long this call may take: `tool_timeout_s` of the rollout. */
  readonly timeoutMs: number;
  /** Aborts when the time is up or the rollout ends. Pass it to everything that waits. */
  readonly signal: AbortSignal;
}

/** Text for the model, or `{ finish: answer }` to end the agent's part with that answer. */
export type CustomToolResult = string | { readonly finish: string };

/** A tool of a scenario. Make it with `defineTool`, which infers the type of the arguments and checks the definition. */
export interface CustomTool<Args = unknown> {
  /** Letters, digits, `_` and `-`; unique among the tools of a rollout. */
  readonly name: string;
  /** What the model reads about the tool. */
  readonly description: string;
  /** A zod 4 object schema. The model reads it as JSON Schema, with the description of each field. */
  readonly parameters: Schema<Args>;
  /** Called with valid arguments only. What it throws fails the rollout as `tool-failed`, blamed on the task. */
  run(args: Args, context: CustomToolContext): CustomToolResult | Promise<CustomToolResult>;
}

/** Throws when the definition cannot be offered to a model. */
export function defineTool<Args>(tool: CustomTool<Args>): CustomTool<Args> {
  const { name, description, parameters, run } = tool;
  if (typeof name !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(name))
    throw new Error(`a tool is named ${JSON.stringify(name)}: use 1 to 64 letters, digits, _ and -`);
  if (toolNames.some((builtIn) => builtIn === name)) throw new Error(`the tool ${name} has the name of a built-in tool`);
  if (typeof description !== 'string' || description === '') throw new Error(`the tool ${name} has no description`);
  if (typeof run !== 'function') throw new Error(`the tool ${name} has no function \`run\``);
  toJsonSchema(name, parameters);
  return tool;
}

const jsonObject = z.looseObject({ type: z.literal('object') });

/** Prefers the schema's own method: the user's zod may be another version than ours. */
export function toJsonSchema(tool: string, parameters: Schema): Record<string, unknown> {
  const own: unknown = Reflect.get(Object(parameters), 'toJSONSchema');
  try {
    const json: unknown =
      typeof own === 'function'
        ? own.call(parameters, { io: 'input' })
        : z.toJSONSchema(parameters as unknown as z.ZodType, { io: 'input' });
    const { $schema: _, ...schema } = jsonObject.parse(json);
    return schema;
  } catch (cause) {
    throw new Error(`the parameters of the tool ${tool} must be a zod 4 object schema that JSON Schema can express`, { cause });
  }
}
