// The tools of one rollout, from what the scenario's `init` returned: built-in tools by name, tools from outside, and custom tools behind an
// adapter that checks arguments, limits time and attributes failures.

import { systemClock } from '@millrace/base/clock';
import { Deadline } from '@millrace/base/deadline';
import { raceSignal } from '@millrace/base/race';
import { describeIssues, type ToolCall } from '@millrace/protocol';
import { callScenario } from './call-scenario.ts';
import { type CustomTool, type CustomToolResult, defineTool, toJsonSchema } from './custom-tool.ts';
import type { Opening } from './scenario.ts';
import { toContext } from './tool-time.ts';
import { neutralArguments } from './tools/neutral-arguments.ts';
import type { OutsideContext } from './tools/outside/open-mcp-server.ts';
import type { OutsideTools } from './tools/outside/outside-tools.ts';
import { Prompts } from './tools/prompts.ts';
import type { Tool, ToolResult } from './tools/tool.ts';
import { isToolName, type ToolChoice, type ToolName } from './tools/tool-names.ts';
import { openTool } from './tools/tools.ts';

export interface OpenedTools {
  readonly tools: readonly Tool[];
  /** Closes what was opened for them. */
  close(): Promise<void>;
}

interface ToolsContext extends OutsideContext {
  readonly prompts?: Prompts | undefined;
  readonly outside: OutsideTools;
}

/** Opens tools from outside too. Throws as `openTools` and `OutsideTools.open` do, with nothing left open. */
export async function openAllTools(wanted: Opening['tools'], { prompts, outside, ...context }: ToolsContext): Promise<OpenedTools> {
  await using stack = new AsyncDisposableStack();
  const tools: (ToolName | CustomTool | Tool)[] = [];
  for (const one of wanted) {
    if (typeof one === 'string' ? isToolName(one) : !('mcp' in one)) {
      tools.push(one as ToolName | CustomTool);
      continue;
    }
    const opened = stack.use(await outside.open(one as ToolChoice, context));
    tools.push(...opened.tools);
  }
  const opened = openTools(tools, prompts);
  const owned = stack.move();
  return { tools: opened, close: () => owned.disposeAsync() };
}

/** Throws an Error for an unknown name, a definition that cannot be offered to a model, or two tools with one name. */
export function openTools(wanted: readonly (ToolName | CustomTool | Tool)[], prompts = new Prompts()): readonly Tool[] {
  const open = (name: string): Tool => {
    const tool = openTool(name);
    return { ...tool, spec: prompts.describe(tool.spec) };
  };
  const tools = wanted.map((one) => {
    if (typeof one === 'string') return open(one);
    return 'spec' in one ? one : openCustomTool(defineTool(one));
  });
  const names = tools.map((tool) => tool.spec.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`two tools are named ${twice}`);
  return tools;
}

function openCustomTool(custom: CustomTool): Tool {
  const { name, description } = custom;
  const parameters = toJsonSchema(name, custom.parameters);
  const tool: Tool = {
    spec: { name, description, parameters },
    async run(args, { sandbox, timeoutMs, signal }) {
      const parsed = await custom.parameters.safeParseAsync(args);
      if (!parsed.success) return { kind: 'text', text: `${name}: ${describeIssues(parsed.error.issues)}` };
      using deadline = new Deadline(`the tool ${name}`, timeoutMs, systemClock);
      const within = AbortSignal.any([signal, deadline.signal]);
      const call = { what: `the tool ${name}`, code: 'tool-failed', hasAgentActed: true } as const;
      try {
        const context = toContext(`the tool ${name}`, { timeoutMs, signal: within }, sandbox);
        const work = callScenario(call, async () => toResult(name, await custom.run(parsed.data, context)));
        return await raceSignal(work, within);
      } catch (error) {
        signal.throwIfAborted();
        if (!deadline.signal.aborted) throw error;
        return { kind: 'text', text: `[${name} did not finish within ${timeoutMs / 1000} s and was stopped]` };
      }
    },
    async tryNeutral(text, context) {
      const args = neutralArguments(parameters, text) as ToolCall['arguments'];
      const isTaken = (await custom.parameters.safeParseAsync(args)).success;
      if (isTaken) await tool.run(args, context);
      return isTaken;
    },
  };
  return tool;
}

function toResult(name: string, result: CustomToolResult): ToolResult {
  if (typeof result === 'string') return { kind: 'text', text: result };
  if (typeof result === 'object' && typeof result?.finish === 'string') return { kind: 'finish', answer: result.finish };
  throw new Error(`the tool ${name} returned ${JSON.stringify(result)}: return a string, or { finish: answer }`);
}
