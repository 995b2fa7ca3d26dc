// The sandbox contract on top of the executor wire: each method becomes a call to the executor. It is the same for every driver; drivers
// only start and end sandboxes.

import {
  definedOf,
  execReply,
  fileCopyReply,
  fileReadReply,
  fileWriteReply,
  folderMakeReply,
  folderReadReply,
  maxBodyBytes,
  maxPythonImageBytes,
  maxPythonImages,
  pythonRunReply,
  RolloutError,
  type SandboxId,
  shellRunReply,
} from '@millrace/protocol';
import type { CallGate } from '../limits/call-gate.ts';
import type {
  ExecOptions,
  ExecResult,
  FolderArchive,
  FolderOptions,
  PythonOptions,
  PythonResult,
  Sandbox,
  SandboxUse,
  ShellOptions,
  ShellResult,
} from '../sandbox.ts';
import type { ExecutorClient } from './executor-client.ts';
import { listen } from './listen.ts';
import { openProgram } from './sandbox-program.ts';
import { download, upload } from './transfer.ts';
import { renderTarComment } from './wire/tar-header.ts';

interface ExecutorSandboxParts {
  readonly id: SandboxId;
  readonly client: ExecutorClient;
  /** For calls that start programs. */
  readonly gate: CallGate;
  readonly readUse: () => SandboxUse;
  readonly died: AbortSignal;
  readonly close: () => Promise<void>;
}

const defaultCapBytes = 64 * 1024;
/** Rendered text has at most three bytes for each byte of output, plus a note. */
const textBytesPerByte = 3;
const noteBytes = 256;
/** How long after a command's timeout its reply may arrive: stopping a command takes up to a second, and much longer on a full machine. */
const marginMs = 60_000;
const fileDeadlineMs = 300_000;
const defaultMaxEntries = 100_000;
/** The first cell waits for Python to start, which may take up to a minute. */
const pythonStartMs = 60_000;

export function toSandbox(parts: ExecutorSandboxParts): Sandbox {
  const { id, client, gate, readUse, died, close } = parts;
  let shellTurn: Promise<unknown> = Promise.resolve();
  const run = (argv: readonly string[], options: ExecOptions) => gate.run(() => exec(client, argv, options), options);
  let pythonTurn: Promise<unknown> = Promise.resolve();
  return {
    id,
    died,
    runShell(command, options) {
      const run = shellTurn.then(() => gate.run(() => runShell(client, command, options), options));
      shellTurn = run.catch(() => {}); // reported to the caller of that run
      return run;
    },
    runPython(code, options) {
      const run = pythonTurn.then(() => gate.run(() => runPython(client, code, options), options));
      pythonTurn = run.catch(() => {}); // as above
      return run;
    },
    exec: run,
    openProgram: (argv, options) => openProgram(client, argv, options),
    listen: (options) => listen(client, options),
    upload: (from, to, options = {}) => upload(run, { from, to }, options),
    download: async (from, to, options = {}) => ({ skipped: await download(run, { from, to }, options) }),
    async readFile(path, { maxBytes, anyLink, signal }) {
      const params = definedOf({ path, max_bytes: Math.min(maxBytes, maxBodyBytes), any_link: anyLink });
      const call = { method: 'file.read', params, reply: fileReadReply, maxBytes, deadlineMs: fileDeadlineMs, signal } as const;
      return (await client.call(call)).body;
    },
    async writeFile(path, content, { mode = 0o644, signal } = {}) {
      const body = toBody(content, `the content of ${path}`);
      const params = { path, mode };
      await client.call({ method: 'file.write', params, body, reply: fileWriteReply, maxBytes: 0, deadlineMs: fileDeadlineMs, signal });
    },
    async copyFile(from, to, { mode = 0o644, signal } = {}) {
      const params = { from, path: to, mode };
      await client.call({ method: 'file.copy', params, reply: fileCopyReply, maxBytes: 0, deadlineMs: fileDeadlineMs, signal });
    },
    async makeFolder(path, { mode = 0o755, signal } = {}) {
      await client.call({
        method: 'folder.make',
        params: { path, mode },
        reply: folderMakeReply,
        maxBytes: 0,
        deadlineMs: fileDeadlineMs,
        signal,
      });
    },
    readFolder: (path, options) => readFolder(client, path, options),
    readUse,
    [Symbol.asyncDispose]: close,
  };
}

async function readFolder(client: ExecutorClient, path: string, options: FolderOptions): Promise<FolderArchive> {
  const { maxEntries = defaultMaxEntries, sinceMs, stopPrograms = false, anyLink, exclude, listUnchanged, signal } = options;
  const maxBytes = Math.min(options.maxBytes, maxBodyBytes);
  const limits = { max_bytes: maxBytes, max_entries: maxEntries };
  const kept = { exclude, any_link: anyLink, list_unchanged: listUnchanged };
  const params = definedOf({ path, ...limits, since_ms: sinceMs, stop_programs: stopPrograms, ...kept });
  const call = { method: 'folder.read', params, reply: folderReadReply, maxBytes, deadlineMs: fileDeadlineMs, signal } as const;
  const { result, body } = await client.call(call);
  const { entries, skipped, left_out: leftOut, list_bytes: listBytes } = result;
  const at = body.length - listBytes;
  const files = body.subarray(0, at);
  const archive = skipped.length === 0 ? files : Buffer.concat([renderTarComment(JSON.stringify(skipped)), files]);
  return { archive, entries, skipped, leftOut, unchanged: body.subarray(at) };
}

async function runShell(client: ExecutorClient, command: string, options: ShellOptions): Promise<ShellResult> {
  const { timeoutMs, capBytes = defaultCapBytes, signal } = options;
  const { result, body } = await client.call({
    method: 'shell.run',
    params: { timeout_ms: timeoutMs, cap_bytes: capBytes },
    body: toBody(command, 'the command'),
    reply: shellRunReply,
    maxBytes: capBytes * textBytesPerByte + noteBytes,
    deadlineMs: timeoutMs + marginMs,
    signal,
  });
  return definedOf({
    end: result.end,
    exitCode: result.exit_code ?? undefined,
    output: body.toString('utf8'),
    totalBytes: result.total_bytes,
    cutBytes: result.cut_bytes,
    cwd: result.cwd ?? undefined,
    ms: result.ms,
  });
}

async function runPython(client: ExecutorClient, code: string, options: PythonOptions): Promise<PythonResult> {
  const { timeoutMs, capBytes = defaultCapBytes, restart = false, signal } = options;
  const { result, body } = await client.call({
    method: 'python.run',
    params: { timeout_ms: timeoutMs, cap_bytes: capBytes, restart },
    body: toBody(code, 'the cell'),
    reply: pythonRunReply,
    maxBytes: capBytes * textBytesPerByte + noteBytes + maxPythonImages * maxPythonImageBytes,
    deadlineMs: timeoutMs + pythonStartMs + marginMs,
    signal,
  });
  let at = result.text_bytes;
  const images = result.images.map(({ mime, bytes }) => {
    at += bytes;
    return { mimeType: mime, data: body.subarray(at - bytes, at) };
  });
  return {
    end: result.end,
    output: body.toString('utf8', 0, result.text_bytes),
    images,
    totalBytes: result.total_bytes,
    cutBytes: result.cut_bytes,
    stateLost: result.state_lost,
    ms: result.ms,
  };
}

async function exec(client: ExecutorClient, argv: readonly string[], options: ExecOptions): Promise<ExecResult> {
  const { stdin = '', cwd, env, timeoutMs, capBytes = defaultCapBytes, expire, signal } = options;
  const params = definedOf({ argv, cwd, env, timeout_ms: timeoutMs, cap_bytes: capBytes });
  const { result, body } = await client.call({
    method: 'exec',
    params,
    body: toBody(stdin, 'standard input'),
    reply: { parse: (value) => parseExec(value, capBytes) },
    maxBytes: 2 * capBytes + noteBytes,
    deadlineMs: timeoutMs + marginMs,
    expire,
    signal,
  });
  return definedOf({
    exitCode: result.exit_code ?? undefined,
    signal: result.signal ?? undefined,
    timedOut: result.timed_out,
    stdout: body.subarray(0, result.stdout_bytes),
    stderr: body.subarray(result.stdout_bytes, result.stdout_bytes + result.stderr_bytes),
    cutBytes: result.cut_bytes,
  });
}

function parseExec(value: unknown, capBytes: number) {
  const reply = execReply.parse(value);
  if (reply.stdout_bytes <= capBytes && reply.stderr_bytes <= capBytes + noteBytes) return reply;
  throw new Error(`${reply.stdout_bytes} and ${reply.stderr_bytes} bytes of output where ${capBytes} were allowed`);
}

function toBody(content: Buffer | string, what: string): Buffer {
  const body = Buffer.from(content);
  if (body.length > maxBodyBytes) throw new RolloutError('sandbox-refused', `${what} has ${body.length} bytes, more than ${maxBodyBytes}`);
  return body;
}
