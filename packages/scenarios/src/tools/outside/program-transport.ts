// MCP over the standard input and output of a program in the sandbox. Its output is read only while a reply is awaited, and only so much:
// a server that floods its output fills its own pipe, not this process.

import { messageOf } from '@millrace/protocol';
import type { ProgramOutput, SandboxProgram } from '@millrace/sandbox';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type JSONRPCMessage, JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js';
import { maxReplyBytes } from './mcp-limits.ts';

const readMs = 30_000;
/** For one reply, whatever the lines say. */
const maxLines = 10_000;

export class ProgramTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** Why the server cannot be used any longer. */
  fault: unknown;
  readonly #program: SandboxProgram;
  readonly #awaited = new Set<string | number>();
  #rest: Buffer[] = [];
  #bytes = 0;
  #lines = 0;
  #isReading = false;
  #isClosed = false;

  constructor(program: SandboxProgram) {
    this.#program = program;
  }

  async start(): Promise<void> {}

  async send(message: JSONRPCMessage): Promise<void> {
    const isRequest = 'method' in message && 'id' in message;
    if (isRequest) this.#awaited.add(message.id);
    const cancelled = 'method' in message && message.method === 'notifications/cancelled' ? message.params?.requestId : undefined;
    if (typeof cancelled === 'number' || typeof cancelled === 'string') this.#awaited.delete(cancelled);
    if (isRequest && !this.#isReading) void this.#read();
    try {
      await this.#program.write(`${JSON.stringify(message)}\n`);
    } catch (error) {
      this.#end(error);
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#end(undefined);
    await this.#program[Symbol.asyncDispose]();
  }

  /** Never rejects. */
  async #read(): Promise<void> {
    this.#isReading = true;
    this.#bytes = 0;
    this.#lines = 0;
    try {
      while (this.#awaited.size > 0 && !this.#isClosed) this.#take(await this.#program.read({ timeoutMs: readMs }));
    } catch (error) {
      this.#end(error);
    }
    this.#isReading = false;
  }

  #take({ data, end }: ProgramOutput): void {
    this.#bytes += data.length;
    if (this.#bytes > maxReplyBytes) throw new Error(`it printed more than ${maxReplyBytes} bytes for one reply`);
    let from = 0;
    for (let at = data.indexOf(10); at >= 0; at = data.indexOf(10, from)) {
      this.#takeLine(Buffer.concat([...this.#rest, data.subarray(from, at)]).toString('utf8'));
      this.#rest = [];
      from = at + 1;
    }
    if (from < data.length) this.#rest.push(Buffer.from(data.subarray(from)));
    if (end) throw new Error(`it ended with ${end.signal ?? `exit code ${end.exitCode}`}${describeErrors(end.stderr)}`);
  }

  /** What is not a message is skipped, as logs on standard output are common; notifications are of no use here. */
  #takeLine(line: string): void {
    if (++this.#lines > maxLines) throw new Error(`it printed more than ${maxLines} lines for one reply`);
    if (line.trim() === '') return;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (error) {
      this.onerror?.(new Error(`a line is not JSON: ${messageOf(error)}`));
      return;
    }
    if (typeof value !== 'object' || value === null || !('id' in value)) return;
    const parsed = JSONRPCMessageSchema.safeParse(value);
    if (!parsed.success) return;
    if (!('method' in parsed.data) && parsed.data.id !== undefined) this.#awaited.delete(parsed.data.id);
    this.onmessage?.(parsed.data);
  }

  #end(why: unknown): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.fault = why;
    this.#awaited.clear();
    this.onclose?.();
  }
}

function describeErrors(stderr: string): string {
  const tail = stderr.trim().slice(-1000);
  return tail === '' ? '' : `: ${tail}`;
}
