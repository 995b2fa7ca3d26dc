// The tools from outside that tasks may choose: those of the configuration, which are addresses of the operator's, and MCP servers that run
// in the sandbox of the task. Nothing that a task or an agent says becomes an address or a header.

import { messageOf } from '@millrace/protocol';
import type { Tool } from '../tool.ts';
import { isToolName, labelOf, type ToolChoice, toolNames } from '../tool-names.ts';
import { Endpoint } from './endpoint.ts';
import { openHttpTool } from './http-tool.ts';
import type { OutsideContext } from './open-mcp-server.ts';
import type { OutsideConfig } from './outside-config.ts';

interface OpenedOutside extends AsyncDisposable {
  readonly tools: readonly Tool[];
}

/** Why this choice cannot be opened; undefined if nothing is known against it before it is tried. */
export function findChoiceFault(choice: ToolChoice, config: OutsideConfig): string | undefined {
  if (typeof choice !== 'string') {
    if (choice.command !== undefined || Object.hasOwn(config.mcp, choice.mcp)) return undefined;
    return `no MCP server is named ${choice.mcp}: ${listNames(config.mcp, 'the configuration has')}; one that runs in the sandbox needs a \`command\``;
  }
  if (isToolName(choice) || Object.hasOwn(config.http, choice) || Object.hasOwn(config.mcp, choice)) return undefined;
  const names = listNames({ ...config.http, ...config.mcp }, 'those of the configuration are');
  return `no tool is named ${choice}; the built-in tools are ${toolNames.join(', ')}, and ${names}`;
}

const listNames = (named: object, lead: string): string => `${lead} ${Object.keys(named).join(', ') || 'none'}`;

export class OutsideTools implements AsyncDisposable {
  readonly #config: OutsideConfig;
  readonly #endpoints = new Map<string, Endpoint>();

  /** Throws an Error that names a header whose variable is not set. */
  constructor(config: OutsideConfig, env: Readonly<Record<string, string | undefined>> = process.env) {
    this.#config = config;
    for (const [kind, named] of [['http', config.http] as const, ['mcp', config.mcp] as const])
      for (const [name, one] of Object.entries(named)) {
        try {
          this.#endpoints.set(name, new Endpoint(name, one, env));
        } catch (error) {
          throw new Error(`tools.${kind}.${messageOf(error)}`, { cause: error });
        }
      }
  }

  /**
   * Throws an Error that says what is wrong with the choice or with a server in the sandbox, `tool-unavailable` if a server of the
   * configuration does not answer as it should, or the reason of the signal.
   */
  async open(choice: ToolChoice, context: OutsideContext): Promise<OpenedOutside> {
    const fault = findChoiceFault(choice, this.#config);
    if (fault !== undefined) throw new Error(fault);
    const name = labelOf(choice);
    const tool = typeof choice === 'string' ? this.#config.http[name] : undefined;
    const endpoint = this.#endpoints.get(name);
    if (tool && endpoint) return { tools: [openHttpTool(endpoint, tool)], [Symbol.asyncDispose]: async () => {} };
    const server = typeof choice === 'string' ? { mcp: name } : choice;
    if (server.command === undefined && !endpoint) throw new Error(`${name} is not a tool from outside`);
    // Loaded only here: most services use no MCP server, and the library is a fifth of what a worker would load.
    const { openEndpointServer, openProgramServer } = await import('./open-mcp-server.ts');
    if (server.command !== undefined || !endpoint) return await openProgramServer(server, context);
    return await openEndpointServer(endpoint, server, context);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#endpoints.values()].map((endpoint) => endpoint[Symbol.asyncDispose]()));
  }
}
