// What a scenario in Python asks of its sandboxes: each request is one method of the sandbox contract, with bytes as base64.

import { definedOf } from '@millrace/protocol';
import type { Sandbox, SandboxSpec } from '@millrace/sandbox';
import { z } from 'zod';
import { runCheck } from '../verifier/run-check.ts';
import { unpackFolder } from '../verifier/unpack-folder.ts';

export interface AskContext {
  readonly signal: AbortSignal;
  /** The agent's. */
  readonly sandbox?: Sandbox | undefined;
  /** Only in `evaluate`. */
  openSandbox?(spec?: SandboxSpec): Promise<Sandbox>;
}

const seconds = z
  .number()
  .positive()
  .transform((value) => value * 1000);
const bytes = z.base64().transform((text) => Buffer.from(text, 'base64'));
const which = { sandbox: z.union([z.literal('agent'), z.int()]) };
const env = z.record(z.string(), z.string());

const asks = {
  exec: z.object({
    ...which,
    argv: z.array(z.string()).min(1),
    timeout_s: seconds,
    stdin: bytes,
    cwd: z.string().optional(),
    env: env.optional(),
    cap_bytes: z.int(),
  }),
  run_shell: z.object({ ...which, command: z.string(), timeout_s: seconds }),
  run_python: z.object({ ...which, code: z.string(), timeout_s: seconds }),
  read_file: z.object({ ...which, path: z.string(), max_bytes: z.int() }),
  write_file: z.object({ ...which, path: z.string(), content: bytes, mode: z.int() }),
  read_folder: z.object({ ...which, path: z.string(), max_bytes: z.int(), stop_programs: z.boolean() }),
  unpack_folder: z.object({ ...which, archive: bytes }),
  run_check: z.object({
    ...which,
    script: z.string(),
    language: z.enum(['bash', 'python']).default('bash'),
    timeout_s: seconds,
    reward_range: z.tuple([z.number(), z.number()]),
    env,
    skipped: z.array(z.string()).default([]),
  }),
  upload: z.object({ ...which, from: z.string(), to: z.string() }),
  download: z.object({ ...which, from: z.string(), to: z.string() }),
  open_sandbox: z.object({ spec: z.custom<SandboxSpec>((value) => typeof value === 'object' && value !== null).optional() }),
} as const;

type Asks = { readonly [Name in keyof typeof asks]: z.infer<(typeof asks)[Name]> };
type Answers = {
  readonly [Name in Exclude<keyof Asks, 'open_sandbox'>]: (sandbox: Sandbox, args: Asks[Name], context: AskContext) => Promise<unknown>;
};

const answers: Answers = {
  async exec(sandbox, { argv, timeout_s, cap_bytes, ...rest }, { signal }) {
    const { stdin, cwd, env } = rest;
    const result = await sandbox.exec(argv, { timeoutMs: timeout_s, capBytes: cap_bytes, stdin, signal, ...definedOf({ cwd, env }) });
    const { exitCode, timedOut, stdout, stderr, cutBytes } = result;
    const ended = definedOf({ exit_code: exitCode, signal: result.signal });
    return { ...ended, timed_out: timedOut, stdout: stdout.toString('base64'), stderr: stderr.toString('base64'), cut_bytes: cutBytes };
  },
  async run_shell(sandbox, { command, timeout_s }, { signal }) {
    const { end, exitCode, output, cwd } = await sandbox.runShell(command, { timeoutMs: timeout_s, signal });
    return definedOf({ end, exit_code: exitCode, output, cwd });
  },
  async run_python(sandbox, { code, timeout_s }, { signal }) {
    const { end, output, stateLost } = await sandbox.runPython(code, { timeoutMs: timeout_s, signal });
    return { end, output, state_lost: stateLost };
  },
  async read_file(sandbox, { path, max_bytes }, { signal }) {
    return { content: (await sandbox.readFile(path, { maxBytes: max_bytes, signal })).toString('base64') };
  },
  write_file: (sandbox, { path, content, mode }, { signal }) => sandbox.writeFile(path, content, { mode, signal }),
  async read_folder(sandbox, { path, max_bytes, stop_programs }, { signal }) {
    const { archive } = await sandbox.readFolder(path, { maxBytes: max_bytes, stopPrograms: stop_programs, signal });
    return { archive: archive.toString('base64') };
  },
  unpack_folder: (sandbox, { archive }, { signal }) => unpackFolder(sandbox, archive, { signal }),
  async run_check(sandbox, { script, language, timeout_s, reward_range, env, skipped }, { signal, openSandbox }) {
    if (!openSandbox) throw new Error('run_check is only possible in evaluate');
    const options = { openSandbox, rewardRange: reward_range, env, skipped, timeoutMs: timeout_s, signal };
    return await runCheck(sandbox, { script, language, ...options });
  },
  upload: (sandbox, { from, to }, { signal }) => sandbox.upload(from, to, { signal }),
  download: (sandbox, { from, to }, { signal }) => sandbox.download(from, to, { signal }),
};

/** The requests of one call; the sandboxes that it opened are numbered. */
export function openAsks(context: AskContext): (method: string, args: Readonly<Record<string, unknown>>) => Promise<unknown> {
  const opened: Sandbox[] = [];
  const find = (which: number | 'agent'): Sandbox => {
    const found = which === 'agent' ? context.sandbox : opened[which];
    if (!found) throw new Error(which === 'agent' ? 'there is no sandbox here' : 'that sandbox was closed when its function returned');
    return found;
  };
  const run = <Name extends keyof Answers>(name: Name, args: unknown): Promise<unknown> => {
    const parsed = asks[name].parse(args) as Asks[Name];
    return answers[name](find(parsed.sandbox), parsed, context);
  };
  return async (method, args) => {
    if (method === 'open_sandbox') {
      if (!context.openSandbox) throw new Error('open_sandbox() is only possible in evaluate');
      const { spec } = asks.open_sandbox.parse(args);
      return { sandbox: opened.push(await context.openSandbox(spec)) - 1 };
    }
    if (!Object.hasOwn(answers, method)) throw new Error(`there is no request ${method}`);
    return await run(method as keyof Answers, args);
  };
}
