// A connection to an MCP server: to a program in the sandbox, or to an address of the configuration.

import { systemClock } from '@millrace/base/clock';
import { Deadline } from '@millrace/base/deadline';
import { raceSignal } from '@millrace/base/race';
import { definedOf } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { McpChoice } from '../tool-names.ts';
import type { Endpoint } from './endpoint.ts';
import { maxReplyBytes } from './mcp-limits.ts';
import { ProgramTransport } from './program-transport.ts';

export interface LinkTime {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface McpLink extends AsyncDisposable {
  readonly client: Client;
  /** Why the connection is of no use any longer; undefined while it is. */
  readonly fault: unknown;
}

/** The server offers nothing to us but its tools, and we offer nothing to it: no sampling, no roots, no questions to a user. */
const openClient = () => new Client({ name: 'millrace', version: '1' }, { capabilities: {} });

/** Throws what the sandbox throws, or why the program is no MCP server. It is killed with the link, and with its sandbox. */
export async function linkProgram(sandbox: Sandbox, choice: McpChoice, time: LinkTime): Promise<McpLink> {
  const { command = [], env, cwd } = choice;
  const transport = new ProgramTransport(await sandbox.openProgram(command, { signal: time.signal, ...definedOf({ env, cwd }) }));
  const client = openClient();
  const link: McpLink = {
    client,
    get fault() {
      return transport.fault;
    },
    [Symbol.asyncDispose]: () => transport.close(),
  };
  return await connect(link, transport, time);
}

const closeMs = 2000;

/** Throws what the endpoint throws, or why its server is no MCP server. */
export async function linkEndpoint(endpoint: Endpoint, time: LinkTime): Promise<McpLink> {
  const client = openClient();
  let fault: unknown;
  const transport = new StreamableHTTPClientTransport(new URL(endpoint.url), {
    fetch: async (url, init) => {
      if (String(url) !== new URL(endpoint.url).href) throw new Error(`the server sent us to ${String(url)}, which is not its address`);
      // The stream of messages that answer no request: none of them is of use here.
      if (init?.method === 'GET') return new Response(null, { status: 405 });
      const signal = init?.signal ?? time.signal;
      const headers = Object.fromEntries(new Headers(init?.headers));
      const body = typeof init?.body === 'string' ? { body: init.body } : {};
      const reply = await endpoint.fetch({ method: init?.method ?? 'POST', headers, ...body, signal }).catch((error: unknown) => {
        if (!signal.aborted) fault = error;
        throw error;
      });
      return withLimit(reply, (error) => {
        fault = error;
        void transport.close();
      });
    },
    // Broken streams are not resumed: the call fails, and the agent may call again.
    reconnectionOptions: { maxRetries: 0, initialReconnectionDelay: 1000, maxReconnectionDelay: 1000, reconnectionDelayGrowFactor: 1 },
  });
  const link: McpLink = {
    client,
    get fault() {
      return fault;
    },
    async [Symbol.asyncDispose]() {
      using deadline = new Deadline('closing the session', closeMs, systemClock);
      await raceSignal(transport.terminateSession(), deadline.signal).catch(() => {}); // the server forgets the session by itself
      await transport.close();
    },
  };
  return await connect(link, transport, time);
}

async function connect(link: McpLink, transport: Transport, { timeoutMs, signal }: LinkTime): Promise<McpLink> {
  try {
    await link.client.connect(transport as Transport & { sessionId?: string }, { timeout: timeoutMs, signal });
    return link;
  } catch (error) {
    const fault = link.fault ?? error;
    await link[Symbol.asyncDispose]();
    signal.throwIfAborted();
    throw fault;
  }
}

/** The reply, whose body breaks after too many bytes. */
function withLimit(reply: Response, onTooLong: (error: Error) => void): Response {
  if (!reply.body || reply.status === 204) return reply;
  let bytes = 0;
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.length;
      if (bytes <= maxReplyBytes) return controller.enqueue(chunk);
      const error = new Error(`it sent more than ${maxReplyBytes} bytes for one reply`);
      controller.error(error);
      onTooLong(error);
    },
  });
  const headers = Object.fromEntries(reply.headers);
  return new Response(reply.body.pipeThrough(limit), { status: reply.status, statusText: reply.statusText, headers });
}
