// Declares tools in the messages, for chat templates that do not declare them: the system message lists the tools and shows the format
// that the tool-call parser reads, and calls in earlier turns are written in that format.

import type { Message, ToolCall, ToolSpec } from '@millrace/protocol';
import { isRecord, type ToolFormat } from './tool-calls.ts';

type PlainCall = Pick<ToolCall, 'name' | 'arguments'>;

/** How a call is written in each format. */
const writers: Readonly<Partial<Record<ToolFormat, (call: PlainCall) => string>>> = {
  hermes: (call) => `<tool_call>\n${toJson(call, 'arguments')}\n</tool_call>`,
  'qwen3-coder': ({ name, arguments: args }) => {
    const rows = Object.entries(args).map(([key, value]) => `<parameter=${key}>\n${toText(value)}\n</parameter>\n`);
    return `<tool_call>\n<function=${name}>\n${rows.join('')}</function>\n</tool_call>`;
  },
  'llama3-json': (call) => toJson(call, 'parameters'),
  mistral: (call) => `[TOOL_CALLS][${toJson(call, 'arguments')}]`,
  fenced: ({ arguments: args }) => `\`\`\`bash\n${toText(args.command)}\n\`\`\``,
};

/** The formats that can be taught in a message. The others need control tokens that only a model's own template writes. */
export const taughtFormats = Object.keys(writers);

export function writeCall(format: ToolFormat, call: PlainCall): string {
  const write = writers[format];
  if (!write) throw new Error(`calls in the ${format} format cannot be taught; set model.toolParser to one of ${taughtFormats.join(', ')}`);
  return write(call);
}

interface TeachOptions {
  readonly format: ToolFormat;
  /** Whether the template accepts a system message; otherwise the first user message begins with the tools. */
  readonly hasSystem: boolean;
  /** How the template itself writes a call; it then writes those of earlier turns too. */
  readonly write?: (call: PlainCall) => string;
}

/** The messages with the tools in them, to be rendered without tools. */
export function teachTools(
  messages: readonly Message[],
  tools: readonly ToolSpec[],
  { format, hasSystem, write }: TeachOptions,
): Message[] {
  const written = write ? messages : messages.map((message) => writeCalls(message, format));
  const lesson = describeTools(tools, format, write);
  const role = hasSystem ? 'system' : 'user';
  const at = written.findIndex((message) => message.role === role);
  if (at < 0) return [{ role, content: lesson }, ...written];
  const join = (content: string) => (hasSystem ? `${content}\n\n${lesson}` : `${lesson}\n\n${content}`);
  return written.map((message, index) => (index === at ? { ...message, content: join(message.content) } : message));
}

function writeCalls({ tool_calls, ...message }: Message, format: ToolFormat): Message {
  if (!tool_calls || tool_calls.length === 0) return message;
  const parts = [message.content, ...tool_calls.map((call) => writeCall(format, call))];
  return { ...message, content: parts.filter((part) => part !== '').join('\n') };
}

/** Fenced blocks can only run `bash`. */
function describeTools(tools: readonly ToolSpec[], format: ToolFormat, write = (call: PlainCall) => writeCall(format, call)): string {
  if (format === 'fenced') {
    const bash = tools.find(({ name }) => name === 'bash');
    const what = bash === undefined ? '' : ` ${bash.description}`;
    return `You can run shell commands.${what} Write each command in a block like this:\n\n${writeCall(format, example(bash))}\n\nIts output follows in the next message.`;
  }
  const list = tools.map((tool) => JSON.stringify(tool)).join('\n');
  return `You can use these tools:\n\n${list}\n\nTo use one, write a call like this, with your own values:\n\n${write(example(tools[0])).trim()}\n\nIts result follows in the next message.`;
}

/** A call of the tool with a value for each required argument, or for all of them if none is required. */
function example(tool: ToolSpec | undefined): PlainCall {
  const { properties, required } = tool?.parameters ?? {};
  const kinds = isRecord(properties) ? properties : { command: { type: 'string' } };
  const wanted = Array.isArray(required) && required.length > 0 ? required.map(String) : Object.keys(kinds);
  return { name: tool?.name ?? 'bash', arguments: Object.fromEntries(wanted.map((key) => [key, toExample(key, kinds[key])])) };
}

function toExample(key: string, kind: unknown): unknown {
  const { type, enum: values } = isRecord(kind) ? kind : {};
  if (Array.isArray(values) && values.length > 0) return values[0];
  if (type === 'integer' || type === 'number') return 1;
  if (type === 'boolean') return true;
  if (type === 'array') return [];
  if (type === 'object') return {};
  return key === 'command' ? 'ls' : `the ${key}`;
}

function toJson({ name, arguments: args }: PlainCall, key: 'arguments' | 'parameters'): string {
  return JSON.stringify({ name, [key]: args });
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? '');
}
