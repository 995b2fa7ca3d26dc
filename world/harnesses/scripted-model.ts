// A scripted model behind the four APIs that harnesses speak: it calls the harness's shell once for each command, one command a turn, and then
// ends with a text. It keeps no state: how many commands have run is read from the history that the harness sends.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { z } from 'zod';

type HarnessWire = 'chat' | 'responses' | 'messages' | 'gemini';

interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly authorized: boolean;
  readonly body: HarnessBody;
}

export const toolSchema = z.looseObject({
  properties: z.record(z.string(), z.looseObject({ type: z.unknown().optional() })).optional(),
  required: z.array(z.string()).optional(),
});
const declaration = z.looseObject({
  type: z.string().optional(),
  name: z.string().default(''),
  parameters: toolSchema.optional(),
  parametersJsonSchema: toolSchema.optional(),
  input_schema: toolSchema.optional(),
});
const part = z.looseObject({ type: z.string().optional(), role: z.string().optional(), functionResponse: z.unknown().optional() });
const message = z.looseObject({
  type: z.string().optional(),
  role: z.string().optional(),
  content: z.unknown().optional(),
  parts: z.array(part).default([]),
});

/** What is read of the requests of seven programs. */
const harnessBody = z.looseObject({
  model: z.string().optional(),
  stream: z.boolean().optional(),
  tools: z
    .array(declaration.extend({ function: declaration.optional(), functionDeclarations: z.array(declaration).default([]) }))
    .default([]),
  messages: z.array(message).default([]),
  input: z.array(message).default([]),
  contents: z.array(message).default([]),
});
type HarnessBody = z.infer<typeof harnessBody>;

interface DeclaredTool {
  readonly name: string;
  readonly schema: z.infer<typeof toolSchema>;
}

export const shellNames = /^(bash|shell|exec_command|run_shell_command)$/i;

export function openScriptedModel(wire: HarnessWire, commands: readonly string[], key: string) {
  const seen: SeenRequest[] = [];
  const answer: RequestListener = async (request, reply) => {
    const body = harnessBody.parse(request.method === 'POST' ? await json(request) : {});
    seen.push({ method: request.method ?? '', path: request.url ?? '', authorized: JSON.stringify(request.headers).includes(key), body });
    if (!isCall(wire, request)) return void reply.writeHead(404).end();
    const tool = toolsOf(wire, body).find(({ name }) => shellNames.test(name));
    const command = tool && commands[countResults(wire, body)];
    const call = tool && command !== undefined ? { name: tool.name, input: toInput(tool, command) } : undefined;
    write[wire](reply, { call, body, turn: seen.length });
  };
  return { seen, answer };
}

const paths = {
  chat: /^\/v1\/chat\/completions/,
  responses: /^\/v1\/responses/,
  messages: /^\/v1\/messages/,
  gemini: /^\/v1beta\/models\/[^/]+:/,
};

function isCall(wire: HarnessWire, { method, url }: IncomingMessage): boolean {
  return method === 'POST' && paths[wire].test(url ?? '');
}

function toolsOf(wire: HarnessWire, { tools }: HarnessBody): DeclaredTool[] {
  const declared = {
    chat: tools.flatMap((one) => one.function ?? []),
    messages: tools,
    responses: tools.filter(({ type }) => type === 'function'),
    gemini: tools.flatMap((one) => one.functionDeclarations),
  }[wire];
  return declared.map((one) => ({ name: one.name, schema: one.parametersJsonSchema ?? one.parameters ?? one.input_schema ?? {} }));
}

function countResults(wire: HarnessWire, { messages, input, contents }: HarnessBody): number {
  const content = messages.flatMap((one) => z.array(part).catch([]).parse(one.content));
  const [items, isResult] = {
    chat: [messages, ({ role }: z.infer<typeof part>) => role === 'tool'],
    responses: [input, ({ type }: z.infer<typeof part>) => type === 'function_call_output'],
    messages: [content, ({ type }: z.infer<typeof part>) => type === 'tool_result'],
    gemini: [contents.flatMap(({ parts }) => parts), ({ functionResponse }: z.infer<typeof part>) => functionResponse !== undefined],
  }[wire] as [z.infer<typeof part>[], (one: z.infer<typeof part>) => boolean];
  return items.filter(isResult).length;
}

/** The command, and something of the right kind for every other required argument. */
export function toInput({ schema }: DeclaredTool, command: string): Record<string, unknown> {
  const fields = { ...schema.properties };
  const wanted = new Set([...(schema.required ?? []), ...Object.keys(fields).filter((name) => /^(cmd|command)$/.test(name))]);
  const chooseValue = (name: string) => {
    if (/^(cmd|command)$/.test(name)) return command;
    const { type } = fields[name] ?? {};
    return String(type).toLowerCase() === 'boolean' ? false : /number|integer/i.test(String(type)) ? 10 : 'a step';
  };
  return Object.fromEntries([...wanted].map((name) => [name, chooseValue(name)]));
}

interface ScriptedTurn {
  readonly call: { readonly name: string; readonly input: Record<string, unknown> } | undefined;
  readonly body: HarnessBody;
  readonly turn: number;
}

const text = 'All done.';

function startStream(reply: ServerResponse): (data: object, event?: string) => void {
  reply.writeHead(200, { 'content-type': 'text/event-stream' });
  return (data, event) => reply.write(`${event ? `event: ${event}\n` : ''}data: ${JSON.stringify(data)}\n\n`);
}

function writeChat(reply: ServerResponse, { call, body, turn }: ScriptedTurn): void {
  const about = { id: `chat-${turn}`, created: 1, model: body.model };
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const calls = call && [
    { index: 0, id: `call_${turn}`, type: 'function', function: { name: call.name, arguments: JSON.stringify(call.input) } },
  ];
  const message = { role: 'assistant', content: calls ? null : text, ...(calls && { tool_calls: calls }) };
  const finish_reason = calls ? 'tool_calls' : 'stop';
  if (!body.stream) {
    reply.setHeader('content-type', 'application/json');
    reply.end(JSON.stringify({ ...about, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage }));
    return;
  }
  const send = startStream(reply);
  const chunk = { ...about, object: 'chat.completion.chunk' };
  send({ ...chunk, choices: [{ index: 0, delta: message, finish_reason: null }] });
  send({ ...chunk, choices: [{ index: 0, delta: {}, finish_reason }], usage });
  reply.end('data: [DONE]\n\n');
}

function writeResponses(reply: ServerResponse, { call, turn }: ScriptedTurn): void {
  const send = startStream(reply);
  const item = call
    ? { type: 'function_call', id: `fc_${turn}`, call_id: `call_${turn}`, name: call.name, arguments: JSON.stringify(call.input) }
    : { type: 'message', id: `msg_${turn}`, role: 'assistant', content: [{ type: 'output_text', text, annotations: [] }] };
  const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
  const response = { id: `resp_${turn}`, object: 'response', status: 'completed', output: [item], usage };
  send({ type: 'response.created', response: { ...response, status: 'in_progress', output: [] } }, 'response.created');
  send({ type: 'response.output_item.done', output_index: 0, item }, 'response.output_item.done');
  send({ type: 'response.completed', response }, 'response.completed');
  reply.end();
}

function writeMessages(reply: ServerResponse, { call, body, turn }: ScriptedTurn): void {
  const sendAs = startStream(reply);
  const send = (data: { readonly type: string; readonly [field: string]: unknown }) => sendAs(data, data.type);
  const about = { id: `msg_${turn}`, type: 'message', role: 'assistant', model: body.model, content: [], stop_reason: null };
  send({ type: 'message_start', message: { ...about, usage: { input_tokens: 10, output_tokens: 0 } } });
  const block = call ? { type: 'tool_use', id: `toolu_${turn}`, name: call.name, input: {} } : { type: 'text', text: '' };
  const delta = call ? { type: 'input_json_delta', partial_json: JSON.stringify(call.input) } : { type: 'text_delta', text };
  send({ type: 'content_block_start', index: 0, content_block: block });
  send({ type: 'content_block_delta', index: 0, delta });
  send({ type: 'content_block_stop', index: 0 });
  send({ type: 'message_delta', delta: { stop_reason: call ? 'tool_use' : 'end_turn' }, usage: { output_tokens: 5 } });
  send({ type: 'message_stop' });
  reply.end();
}

function writeGemini(reply: ServerResponse, { call, turn }: ScriptedTurn): void {
  const parts = [call ? { functionCall: { id: `call_${turn}`, name: call.name, args: call.input } } : { text }];
  const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 };
  const send = startStream(reply);
  send({ candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP' }], usageMetadata });
  reply.end();
}

const write = { chat: writeChat, responses: writeResponses, messages: writeMessages, gemini: writeGemini };
