// The executor: process 1 of a sandbox. It connects to its worker, replies to each call with one frame, and exits when the connection
// closes. Because it is process 1 of its namespace, every process in the sandbox ends with it.
// Arguments: the folder shared with the worker (socket, env.json, limits.json), the folder for the executor's files, the home folder,
// and optionally a loopback port to connect to instead of the socket.

import { access, existsSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import type { ExecutorCall, ProgramLimits } from '@millrace/protocol';
import { loadCFunctions } from './process/c-functions.ts';
import { expired, runProgram } from './process/exec.ts';
import { readSandboxFile, writeSandboxFile } from './process/files.ts';
import { isUsedUp } from './process/launch.ts';
import type { OpenPrograms } from './process/open-program.ts';
import { packFolder } from './process/pack.ts';
import { type OwnChildren, startReaper } from './process/reap.ts';
import { handleSignals, ignoreRealTimeSignals } from './process/signals.ts';
import type { PythonSession } from './python/python-session.ts';
import { ShellSession } from './shell/shell-session.ts';
import { CallError, errnoOf, messageOf } from './wire/call-error.ts';
import { badImageExitCode } from './wire/exit-code.ts';
import { encodeFrame, openFrameReader } from './wire/frames.ts';

interface ExecutorResult {
  readonly result: unknown;
  readonly body?: Buffer;
}

export function main([linkFolder = '', ownFolder = '', home = '', port]: readonly string[]): void {
  handleSignals();
  startThreads();
  if (!existsSync('/bin/bash')) {
    console.error('there is no /bin/bash in this image, and agents need it: add bash to the image');
    process.exit(badImageExitCode);
  }
  const env = { ...imageEnv(), ...parseEnv(readFileSync(join(linkFolder, 'env.json'), 'utf8')) };
  const limits = parseLimits(readFileSync(join(linkFolder, 'limits.json'), 'utf8'));
  const children: OwnChildren = new Set();
  const cancels = new Map<number, AbortController>();
  // The worker is trusted and limits what it sends.
  const readFrames = openFrameReader({ headBytes: 2 ** 31, bodyBytes: 2 ** 31 });
  const address = port === undefined ? { path: join(linkFolder, 'socket') } : { port: Number(port), host: '127.0.0.1', noDelay: true };
  const socket = connect(address, () => {
    socket.write(encodeFrame({ event: 'ready', pid: process.pid, protocol: 1 }));
    // From here on, what the agent does must not end its executor: an unexpected error costs at most the call that it belongs to.
    process.on('uncaughtException', (error) => console.error(error));
    setImmediate(() => protect(children));
    const shell = new ShellSession({ home, env, limits, children, commandFile: join(ownFolder, 'command') });
    // IPython's files are not part of the agent's work, so they stay out of its home folder.
    const python = openPythonOnce({ home, limits, children, env: { ...env, IPYTHONDIR: join(ownFolder, 'ipython') } });
    const programs = openProgramsOnce();
    socket.on('data', (chunk) => {
      for (const { head, body } of readFrames(chunk)) handle(parseCall(head), body, { shell, python, programs });
    });
  });
  socket.on('error', (error) => console.error(error.message)); // 'close' follows
  // Not 0: Apptainer exits with 0 when a real-time signal killed the executor.
  socket.on('close', () => process.exit(1));

  async function handle(call: ExecutorCall, body: Buffer, sessions: Sessions): Promise<void> {
    if (call.method === 'cancel') return cancels.get(call.params.call)?.abort(call.params.expired ? expired : undefined);
    const cancel = new AbortController();
    cancels.set(call.id, cancel);
    try {
      const { result, body: output } = await runCall(call, body, { ...sessions, home, env, limits, children, signal: cancel.signal });
      socket.write(encodeFrame({ id: call.id, result }, output));
    } catch (error) {
      const kind = error instanceof CallError ? error.kind : isUsedUp(error) ? 'limit' : 'bad-call';
      const errno = error instanceof CallError ? error.errno : errnoOf(error);
      socket.write(encodeFrame({ id: call.id, error: { kind, message: messageOf(error), ...(errno === undefined ? {} : { errno }) } }));
    } finally {
      cancels.delete(call.id);
    }
  }
}

/** All of them, before any program of the agent: the filter of system calls protects the first seven threads by their numbers. */
function startThreads(): void {
  process.env.UV_THREADPOOL_SIZE = '4';
  access('/', () => {}); // the first call that needs a thread starts all four
}

/** Needs a library, which would delay the start. */
function protect(children: OwnChildren): void {
  const c = loadCFunctions(join(dirname(process.argv[1] ?? ''), 'koffi.node'));
  if (!c) return;
  ignoreRealTimeSignals(c);
  startReaper(c, children);
}

interface Sessions {
  readonly shell: ShellSession;
  readonly python: () => Promise<PythonSession>;
  readonly programs: () => Promise<OpenPrograms>;
}

/** Loads the Python session with the first cell: most sandboxes never run one. */
function openPythonOnce(options: Omit<ConstructorParameters<typeof PythonSession>[0], 'script'>): Sessions['python'] {
  let session: PythonSession | undefined;
  return async () => {
    const { PythonSession } = await import('./python/python-session.ts');
    session ??= new PythonSession({ ...options, script: join(dirname(process.argv[1] ?? ''), 'ipython_host.py') });
    return session;
  };
}

function openProgramsOnce(): Sessions['programs'] {
  let programs: OpenPrograms | undefined;
  return async () => {
    const { OpenPrograms } = await import('./process/open-program.ts');
    programs ??= new OpenPrograms();
    return programs;
  };
}

interface CallContext extends Sessions {
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ProgramLimits;
  readonly children: OwnChildren;
  readonly signal: AbortSignal;
}

async function runCall(call: Exclude<ExecutorCall, { method: 'cancel' }>, body: Buffer, context: CallContext): Promise<ExecutorResult> {
  switch (call.method) {
    case 'shell.run': {
      const options = { timeoutMs: call.params.timeout_ms, capBytes: call.params.cap_bytes, signal: context.signal };
      const { reply, output } = await context.shell.run(body, options);
      return { result: reply, body: Buffer.from(output) };
    }
    case 'python.run': {
      const { timeout_ms, cap_bytes, restart } = call.params;
      const options = { timeoutMs: timeout_ms, capBytes: cap_bytes, restart, signal: context.signal };
      const { reply, body: output } = await (await context.python()).run(body, options);
      return { result: reply, body: output };
    }
    case 'exec': {
      const { reply, body: output } = await runProgram(call.params, body, context);
      return { result: reply, body: output };
    }
    case 'program.open':
      return { result: await (await context.programs()).open(call.params, context) };
    case 'program.write':
      await (await context.programs()).write(call.params.program, body, context.signal);
      return { result: {} };
    case 'program.read': {
      const { reply, body: output } = await (await context.programs()).read(call.params, context.signal);
      return { result: reply, body: output };
    }
    case 'program.close':
      (await context.programs()).close(call.params.program);
      return { result: {} };
    case 'file.read': {
      const content = await readSandboxFile(call.params, context.home);
      return { result: { size: content.length }, body: content };
    }
    case 'file.write':
      await writeSandboxFile(call.params, body, context.home);
      return { result: {} };
    case 'folder.read':
      return await packFolder(call.params, context.home);
  }
}

function parseCall(head: unknown): ExecutorCall {
  return head as ExecutorCall;
}

/** The environment that the image sets for its programs, without the variables that describe the container runtime. */
function imageEnv(): Record<string, string> {
  const runtimeNames = /^(APPTAINER|SINGULARITY)|^(NODE_OPTIONS|OLDPWD|PROMPT_COMMAND|PS1|PWD|SHLVL|_)$/;
  const own = Object.entries(process.env).flatMap(([name, value]) =>
    value === undefined || runtimeNames.test(name) ? [] : [[name, value]],
  );
  return Object.fromEntries(own);
}

function parseEnv(text: string): Record<string, string> {
  return JSON.parse(text) as Record<string, string>;
}

function parseLimits(text: string): ProgramLimits {
  return JSON.parse(text) as ProgramLimits;
}

if (import.meta.main) main(process.argv.slice(2));
