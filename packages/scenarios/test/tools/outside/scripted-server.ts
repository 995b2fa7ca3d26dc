// An MCP server as a program of a sandbox, scripted: a function answers each message with lines. It can answer as no honest server does.

import { definedOf } from '@millrace/protocol';
import type { Sandbox, SandboxProgram } from '@millrace/sandbox';

export interface ServerMessage {
  readonly id?: number;
  readonly method: string;
  readonly params?: Record<string, unknown>;
}

/** What the program does after a message: prints this text, ends, or fails as a sandbox does. */
export type Reaction = string | { readonly exit: number; readonly stderr?: string } | { readonly error: Error };
export type Script = (message: ServerMessage) => Reaction | undefined;

export const line = (value: unknown): string => `${JSON.stringify(value)}\n`;
export const result = ({ id }: ServerMessage, value: unknown): string => line({ jsonrpc: '2.0', id, result: value });

export const tool = (name: string, description = `Does ${name}.`) => ({
  name,
  description,
  inputSchema: { type: 'object', properties: {} },
});

/** Answers what every server answers, and leaves the rest to the script. */
export const honest =
  (tools: readonly unknown[], calls: Script): Script =>
  (message) => {
    if (message.method === 'initialize')
      return result(message, { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } });
    if (message.method === 'tools/list') return result(message, { tools });
    return message.method === 'tools/call' ? calls(message) : undefined;
  };

export interface ScriptedSandbox {
  readonly sandbox: Sandbox;
  readonly received: ServerMessage[];
  /** How many times the program was started, and how many of those were closed. */
  readonly counts: { opened: number; closed: number };
}

export function scriptSandbox(script: Script): ScriptedSandbox {
  const received: ServerMessage[] = [];
  const counts = { opened: 0, closed: 0 };
  const openProgram = async (): Promise<SandboxProgram> => {
    counts.opened += 1;
    return openScripted(script, received, () => {
      counts.closed += 1;
    });
  };
  return { sandbox: { openProgram } as unknown as Sandbox, received, counts };
}

const chunkBytes = 1 << 20;

function openScripted(script: Script, received: ServerMessage[], onClose: () => void): SandboxProgram {
  let output = Buffer.alloc(0);
  let end: { exitCode: number; stderr: string } | undefined;
  let error: Error | undefined;
  let wake = () => {};
  let isClosed = false;
  return {
    async write(data) {
      const message = JSON.parse(String(data));
      received.push(message);
      const reaction = script(message);
      if (typeof reaction === 'string') output = Buffer.concat([output, Buffer.from(reaction)]);
      else if (reaction && 'exit' in reaction) end = { exitCode: reaction.exit, stderr: reaction.stderr ?? '' };
      else error = reaction?.error ?? error;
      wake();
    },
    async read() {
      while (output.length === 0 && !end && !error && !isClosed) await new Promise<void>((resolve) => (wake = resolve));
      if (error) throw error;
      const data = output.subarray(0, chunkBytes);
      output = output.subarray(data.length);
      return {
        data,
        ...definedOf({ end: output.length === 0 ? (end ?? (isClosed ? { exitCode: 0, stderr: '' } : undefined)) : undefined }),
      };
    },
    async [Symbol.asyncDispose]() {
      if (!isClosed) onClose();
      isClosed = true;
      wake();
    },
  };
}
