// A program that keeps running in a sandbox, on top of the executor wire.

import { definedOf, programCloseReply, programOpenReply, programReadReply, programWriteReply, RolloutError } from '@millrace/protocol';
import type { OpenProgramOptions, ProgramOutput, SandboxProgram } from '../sandbox.ts';
import type { ExecutorClient } from './executor-client.ts';

const readBytes = 1 << 20;
const errorBytes = 64 * 1024;
/** How long after its own time a reply may arrive. */
const marginMs = 15_000;
const writeDeadlineMs = 60_000;

export async function openProgram(
  client: ExecutorClient,
  argv: readonly string[],
  options: OpenProgramOptions = {},
): Promise<SandboxProgram> {
  const { cwd, env, signal } = options;
  const params = definedOf({ argv, cwd, env });
  const open = { method: 'program.open', params, reply: programOpenReply, maxBytes: 0, deadlineMs: marginMs, signal } as const;
  const { program } = (await client.call(open)).result;
  return {
    async write(data, { signal: within } = {}) {
      const call = { method: 'program.write', params: { program }, body: Buffer.from(data), reply: programWriteReply } as const;
      await client.call({ ...call, maxBytes: 0, deadlineMs: writeDeadlineMs, signal: within });
    },
    read: (wanted) => read(client, program, wanted),
    async [Symbol.asyncDispose]() {
      const call = { method: 'program.close', params: { program }, reply: programCloseReply, maxBytes: 0, deadlineMs: marginMs } as const;
      await client.call(call).catch((error: unknown) => {
        if (!(error instanceof RolloutError)) throw error; // otherwise the sandbox is gone, and the program with it
      });
    },
  };
}

async function read(client: ExecutorClient, program: number, options: Parameters<SandboxProgram['read']>[0]): Promise<ProgramOutput> {
  const { timeoutMs, signal } = options;
  const { result, body } = await client.call({
    method: 'program.read',
    params: { program, timeout_ms: timeoutMs, cap_bytes: readBytes },
    reply: programReadReply,
    maxBytes: readBytes + errorBytes,
    deadlineMs: timeoutMs + marginMs,
    signal,
  });
  const data = body.subarray(0, result.stdout_bytes);
  if (!result.ended) return { data };
  const ended = definedOf({ exitCode: result.exit_code ?? undefined, signal: result.signal ?? undefined });
  return { data, end: { ...ended, stderr: body.toString('utf8', result.stdout_bytes) } };
}
