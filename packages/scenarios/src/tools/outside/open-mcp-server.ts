// Opens an MCP server for one rollout, and says whose fault it is if that fails: of the task's choice, of the program in the sandbox, or of
// the server of the configuration.

import { definedOf, messageOf, RolloutError } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import type { McpChoice } from '../tool-names.ts';
import type { Endpoint } from './endpoint.ts';
import { linkEndpoint, linkProgram } from './mcp-link.ts';
import { ChoiceError, McpServer } from './mcp-server.ts';

export interface OutsideContext {
  /** Absent in scenarios without a sandbox. */
  readonly sandbox?: Sandbox | undefined;
  /** For the start of a server. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export async function openProgramServer(choice: McpChoice, { sandbox, ...time }: OutsideContext): Promise<McpServer> {
  const { mcp: name, only } = choice;
  if (!sandbox) throw new Error(`the MCP server ${name} runs in a sandbox, and this task has none`);
  try {
    return await McpServer.open({ name, connect: (within) => linkProgram(sandbox, choice, within), ...time, ...definedOf({ only }) });
  } catch (error) {
    time.signal.throwIfAborted();
    if (error instanceof RolloutError && error.blame !== 'caller') throw error;
    throw new Error(`the MCP server ${name} (${choice.command?.join(' ')}): ${messageOf(error)}`, { cause: error });
  }
}

export async function openEndpointServer(endpoint: Endpoint, { mcp: name, only }: McpChoice, time: OutsideContext): Promise<McpServer> {
  const { timeoutMs: callMs } = endpoint;
  try {
    return await McpServer.open({
      name,
      connect: (within) => linkEndpoint(endpoint, within),
      timeoutMs: Math.min(time.timeoutMs, callMs),
      signal: time.signal,
      callMs,
      hideSecrets: (text) => endpoint.hideSecrets(text),
      ...definedOf({ only }),
    });
  } catch (error) {
    time.signal.throwIfAborted();
    if (error instanceof RolloutError) throw error;
    const message = `the MCP server ${name} at ${new URL(endpoint.url).origin}: ${endpoint.hideSecrets(messageOf(error))}`;
    if (error instanceof ChoiceError) throw new Error(message, { cause: error });
    throw new RolloutError('tool-unavailable', message, { cause: error });
  }
}
