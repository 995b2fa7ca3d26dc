// The tools of an MCP server, for one rollout. The list of tools is read once: the model has seen it, so it cannot change. A server that
// fails is something that the agent reads, and is connected to again for the next call; what the sandbox or the endpoint throws passes.

import { systemClock } from '@millrace/base/clock';
import { Deadline } from '@millrace/base/deadline';
import { raceSignal } from '@millrace/base/race';
import { messageOf, RolloutError, type ToolSpec } from '@millrace/protocol';
import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { z } from 'zod';
import { cutText } from '../cut-text.ts';
import type { Tool, ToolContext, ToolResult } from '../tool.ts';
import { toolNamePattern } from '../tool-names.ts';
import { maxDescription, maxListed, maxOffered, maxPages, maxSchemaBytes } from './mcp-limits.ts';
import type { LinkTime, McpLink } from './mcp-link.ts';
import { callReply, renderCallReply } from './mcp-result.ts';

interface McpServerOptions extends LinkTime {
  readonly name: string;
  connect(time: LinkTime): Promise<McpLink>;
  /** The most time for a call; `tool_timeout_s` of the rollout if that is shorter. */
  readonly callMs?: number;
  readonly only?: readonly string[] | undefined;
  hideSecrets?(text: string): string;
}

const maxMessage = 2000;
/** A server that ends again and again is not started for ever. */
const maxRestarts = 5;

export class McpServer implements AsyncDisposable {
  readonly #options: McpServerOptions;
  #link: McpLink;
  #restarts = 0;
  #isClosed = false;
  tools: readonly Tool[] = [];

  private constructor(options: McpServerOptions, link: McpLink) {
    this.#options = options;
    this.#link = link;
  }

  /** Throws an Error that says what the server did wrong, what `connect` throws, or the reason of the signal. */
  static async open(options: McpServerOptions): Promise<McpServer> {
    const { name, only, timeoutMs, signal } = options;
    const link = await options.connect({ timeoutMs, signal });
    const server = new McpServer(options, link);
    try {
      const listed = await listTools(link, { timeoutMs, signal });
      server.tools = chooseTools(name, listed, only).map((tool) => server.#openTool(tool));
      return server;
    } catch (error) {
      const fault = link.fault ?? error;
      await server[Symbol.asyncDispose]();
      signal.throwIfAborted();
      throw fault;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#link[Symbol.asyncDispose]();
  }

  #openTool({ name, description, inputSchema }: ListedTool): Tool {
    const server = this.#options.name;
    const spec: ToolSpec = {
      name: toToolName(server, name),
      description: cutText(description ?? '', { most: maxDescription }),
      parameters: inputSchema,
    };
    return {
      spec,
      run: async (args, context) => await this.#run({ tool: name, shown: spec.name, args }, context),
    };
  }

  async #run(call: McpCall, { timeoutMs, signal }: ToolContext): Promise<ToolResult> {
    const { callMs = timeoutMs, hideSecrets = (text) => text } = this.#options;
    const limitMs = Math.min(timeoutMs, callMs);
    using deadline = new Deadline(`the tool ${call.shown}`, limitMs, systemClock);
    const time = { timeoutMs: limitMs, signal: AbortSignal.any([signal, deadline.signal]) };
    const toResult = (text: string): ToolResult => ({ kind: 'text', text: cutText(hideSecrets(text)) });
    try {
      return toResult(await raceSignal(this.#call(call, time), time.signal));
    } catch (error) {
      signal.throwIfAborted();
      const fault = error instanceof ServerLost ? error : (this.#link.fault ?? error);
      if (fault instanceof RolloutError && fault.blame !== 'caller') throw fault; // otherwise the agent removed the program
      if (deadline.signal.aborted) return toResult(`[${call.shown} did not answer within ${limitMs / 1000} s and was cancelled]`);
      return toResult(`[${call.shown} failed: ${messageOf(fault).slice(0, maxMessage)}]`);
    }
  }

  async #call(call: McpCall, time: LinkTime): Promise<string> {
    const note = this.#link.fault === undefined ? '' : await this.#connectAgain(time);
    const request = { method: 'tools/call', params: { name: call.tool, arguments: { ...call.args } } } as const;
    const ask = () => this.#link.client.request(request, callReply, { timeout: time.timeoutMs, signal: time.signal });
    try {
      return note + renderCallReply(await ask());
    } catch (error) {
      // The server has forgotten the session, so the call did not run.
      if (!(error instanceof StreamableHTTPError) || error.code !== 404) throw error;
      return (await this.#connectAgain(time)) + renderCallReply(await ask());
    }
  }

  async #connectAgain(time: LinkTime): Promise<string> {
    const { name, connect } = this.#options;
    if (++this.#restarts > maxRestarts)
      throw new ServerLost(`the connection to ${name} was lost ${maxRestarts} times and is not made again`);
    const old = this.#link;
    await old[Symbol.asyncDispose]();
    const link = await connect(time);
    if (this.#isClosed) await link[Symbol.asyncDispose]();
    this.#link = link;
    return `[the connection to ${name} was lost and made again; what the server had in memory may be gone]\n`;
  }
}

/** The task chose what the server does not have, or too much of it. */
export class ChoiceError extends Error {}

class ServerLost extends Error {}

interface McpCall {
  /** By its name on the server. */
  readonly tool: string;
  readonly shown: string;
  readonly args: Readonly<Record<string, unknown>>;
}

const listedTool = z.looseObject({
  name: z.string().min(1),
  description: z.string().optional(),
  inputSchema: z.looseObject({ type: z.literal('object') }),
});
type ListedTool = z.infer<typeof listedTool>;
const listReply = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });

async function listTools({ client }: McpLink, time: LinkTime): Promise<readonly unknown[]> {
  const tools: unknown[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < maxPages && tools.length <= maxListed; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const options = { timeout: time.timeoutMs, signal: time.signal };
    const reply = await raceSignal(client.request({ method: 'tools/list', params }, listReply, options), time.signal);
    for (const tool of reply.tools) tools.push(tool);
    cursor = reply.nextCursor;
    if (cursor === undefined) break;
  }
  if (cursor !== undefined || tools.length > maxListed)
    throw new Error(`it lists more than ${Math.min(tools.length, maxListed)} tools and does not come to an end`);
  return tools;
}

function chooseTools(server: string, listed: readonly unknown[], only: readonly string[] | undefined): readonly ListedTool[] {
  const nameOf = (tool: unknown): string => z.looseObject({ name: z.string() }).safeParse(tool).data?.name ?? '';
  const names = listed.map(nameOf);
  const missing = only?.find((name) => !names.includes(name));
  if (missing !== undefined) throw new ChoiceError(`it has no tool ${missing}; it has ${cutNames(names)}`);
  const chosen = only === undefined ? listed : only.map((name) => listed[names.indexOf(name)]);
  if (chosen.length === 0) throw new Error('it offers no tools');
  if (chosen.length > maxOffered)
    throw new ChoiceError(
      `it offers ${chosen.length} tools, more than ${maxOffered}: choose some with \`only\`; it has ${cutNames(names)}`,
    );
  const seen = new Set<string>();
  return chosen.map((tool) => {
    const parsed = listedTool.safeParse(tool);
    const name = nameOf(tool).slice(0, 100);
    if (!parsed.success) throw new Error(`its tool ${JSON.stringify(name)} is not described as MCP says: ${z.prettifyError(parsed.error)}`);
    const shown = toToolName(server, parsed.data.name);
    if (seen.has(shown)) throw new Error(`two of its tools are named ${shown} here`);
    seen.add(shown);
    if (!toolNamePattern.test(shown))
      throw new Error(`its tool ${JSON.stringify(name)} cannot be offered: with the name of the server it has more than 64 characters`);
    if (JSON.stringify(parsed.data.inputSchema).length > maxSchemaBytes)
      throw new Error(`the parameters of its tool ${name} take more than ${maxSchemaBytes} bytes`);
    return parsed.data;
  });
}

/** The tools of two servers have different names, and none has the name of a built-in tool. */
const toToolName = (server: string, tool: string): string => `${server}_${tool.replace(/[^A-Za-z0-9_-]/g, '_')}`;

const cutNames = (names: readonly string[]): string => cutText(names.join(', '), { most: 500 });
