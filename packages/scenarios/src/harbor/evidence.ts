// What is judged of a Harbor task: in a shared environment the tests run where the agent worked, and their result is kept; for a separate
// verifier, the artifacts that task.toml names are taken out and put into a fresh sandbox.

import { posix } from 'node:path';
import { RolloutError } from '@millrace/protocol';
import type { Sandbox, SandboxSpec } from '@millrace/sandbox';
import { z } from 'zod';
import { toVerifierFault } from '../verifier/verifier-fault.ts';
import type { HarborTask } from './harbor-task.ts';
import { runTests, stopPrograms, type TestsRun, tailOf, testsRun } from './run-tests.ts';

const maxBytes = 60 << 20;
const maxEntries = 50_000;
const unpackTimeoutMs = 120_000;
/** Where an agent publishes files without task.toml naming them. */
const publishFolder = '/logs/artifacts';

interface Within {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export async function collectEvidence(sandbox: Sandbox, task: HarborTask, within: Within): Promise<Buffer> {
  const { folder } = task;
  const { signal } = within;
  await runHooks(sandbox, task, signal);
  if (folder.mode === 'separate') return await packArtifacts(sandbox, task, signal);
  const { workdir } = folder.environment;
  const options = { folder, env: task.verifierEnv, hasTests: false, workdir, keepsPrograms: task.keepsPrograms, ...within };
  return Buffer.from(JSON.stringify(await runTests(sandbox, options)));
}

export interface JudgeOptions extends Within {
  openSandbox(spec: SandboxSpec): Promise<Sandbox>;
}

export async function judgeEvidence(evidence: Buffer, task: HarborTask, { openSandbox, ...within }: JudgeOptions): Promise<TestsRun> {
  const { folder } = task;
  if (folder.mode === 'shared') return testsRun.parse(JSON.parse(evidence.toString('utf8')));
  const sandbox = await openSandbox(task.verifierSpec);
  await prepareFolders(sandbox, folder.verifier, within.signal);
  const skipped = await unpackArtifacts(sandbox, evidence, within.signal);
  const { workdir, hasTests } = folder.verifier;
  const run = await runTests(sandbox, { folder, env: task.verifierEnv, hasTests, workdir, keepsPrograms: true, ...within });
  return { ...run, skipped };
}

const folders = 'mkdir -p /logs/agent /logs/verifier /logs/artifacts "$@" && if [ -d "$0" ]; then cp -a "$0/." /workspace/; fi';
/** Files that an image has in /workspace, where a sandbox has its own disk. */
const keptWorkspace = '/.singularity.d/workspace';

/** The folders that every environment has, and the image's own /workspace. */
export async function prepareFolders(
  sandbox: Sandbox,
  { workdir, home }: { readonly workdir: string; readonly home: string },
  signal: AbortSignal,
): Promise<void> {
  const made = await sandbox.exec(['/bin/sh', '-c', folders, keptWorkspace, workdir, home], { timeoutMs: unpackTimeoutMs, signal });
  if (made.exitCode !== 0) throw new RolloutError('init-failed', `the folders of the environment could not be made: ${tailOf(made)}`);
}

/** A hook that fails leaves no file, and the check finds out. */
async function runHooks(sandbox: Sandbox, { folder }: HarborTask, signal: AbortSignal): Promise<void> {
  const { workdir } = folder.environment;
  for (const { command, timeout_sec } of folder.toml.verifier.collect)
    await sandbox.exec(['/bin/sh', '-c', command], { cwd: workdir, timeoutMs: timeout_sec * 1000, signal });
}

const listing = z.array(
  z.object({
    path: z.string(),
    kind: z.enum(['folder', 'file']),
    exclude: z.array(z.string()),
    bytes: z.int(),
    /** What was left out of the folder. */
    skipped: z.array(z.string()),
  }),
);
type Listing = z.infer<typeof listing>;

async function packArtifacts(sandbox: Sandbox, { folder }: HarborTask, signal: AbortSignal): Promise<Buffer> {
  await stopPrograms(sandbox, signal);
  const { toml, environment } = folder;
  const entries = toml.artifacts.some(({ source }) => source.replace(/\/+$/, '') === publishFolder)
    ? toml.artifacts
    : [{ source: publishFolder, exclude: [] }, ...toml.artifacts];
  const list: Listing = [];
  const bodies: Buffer[] = [];
  let left = maxBytes;
  for (const { source, exclude } of entries) {
    const path = posix.resolve(environment.workdir, source);
    const found = await readAny(sandbox, path, { left, signal });
    if (found === undefined) continue; // the agent made none, and the check finds out
    list.push({ path, kind: found.kind, exclude, bytes: found.body.length, skipped: [...found.skipped] });
    bodies.push(found.body);
    left -= found.body.length;
  }
  return Buffer.concat([Buffer.from(`${JSON.stringify(list)}\n`), ...bodies]);
}

interface FoundArtifact {
  readonly kind: 'folder' | 'file';
  readonly body: Buffer;
  readonly skipped: readonly string[];
}

async function readAny(
  sandbox: Sandbox,
  path: string,
  { left, signal }: { left: number; signal: AbortSignal },
): Promise<FoundArtifact | undefined> {
  const orAbsent = (error: unknown) => {
    if (error instanceof RolloutError && error.code === 'not-found') return undefined;
    throw error;
  };
  const packed = await sandbox.readFolder(path, { maxBytes: left, maxEntries, signal }).catch(orAbsent);
  if (packed) return { kind: 'folder', body: packed.archive, skipped: packed.skipped };
  const file = await sandbox.readFile(path, { maxBytes: left, signal }).catch(orAbsent);
  return file && { kind: 'file', body: file, skipped: [] };
}

/** Returns what was left out of them. */
async function unpackArtifacts(sandbox: Sandbox, evidence: Buffer, signal: AbortSignal): Promise<string[]> {
  const end = evidence.indexOf('\n');
  if (end < 0) return []; // an untouched environment
  let at = end + 1;
  const list = listing.parse(JSON.parse(evidence.toString('utf8', 0, end)));
  for (const { path, kind, exclude, bytes } of list) {
    const body = evidence.subarray(at, at + bytes);
    at += bytes;
    if (kind === 'file') {
      await sandbox.writeFile(path, body, { mode: 0o755, signal });
      continue;
    }
    const unpack = 'mkdir -p "$0" && exec tar --extract --file=- --directory "$0" --no-same-owner "$@"';
    const argv = ['/bin/sh', '-c', unpack, path, ...exclude.map((pattern) => `--exclude=${pattern}`)];
    const result = await sandbox.exec(argv, { stdin: body, timeoutMs: unpackTimeoutMs, signal });
    if (result.exitCode === 127) throw toVerifierFault("there is no tar program in the verifier's image: add tar to it");
    if (result.exitCode !== 0) throw new RolloutError('policy-failed', `the artifacts of ${path} could not be unpacked: ${tailOf(result)}`);
  }
  return list.flatMap(({ path, skipped }) => skipped.map((note) => `${path}/${note}`));
}
