// Runs programs as a user's shell would: with the machine's own PATH, and without what `npm test` adds to the environment.

import { type ChildProcess, spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

export interface ProgramOptions {
  readonly cwd: string;
  /** Looked in before the machine's own folders. */
  readonly path?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function startProgram([program = '', ...args]: readonly string[], options: ProgramOptions): ChildProcess {
  return spawn(program, args, { cwd: options.cwd, env: userEnvironment(options), stdio: ['pipe', 'pipe', 'pipe'] });
}

/** Resolves when it has ended, with any exit code. */
export async function runProgram(command: readonly string[], options: ProgramOptions): Promise<ProgramEnd> {
  const child = startProgram(command, options);
  if (!child.stdin || !child.stdout || !child.stderr) throw new Error(`${command[0]} has no pipes`);
  child.stdin.on('error', () => {}); // a program need not read its input
  child.stdin.end(options.input ?? '');
  const ended = new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve([code, signal]));
  });
  const [stdout, stderr, [code, signal]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, signal, stdout, stderr };
}

/** Like runProgram; throws an Error with all output where the exit code is not 0. */
export async function needProgram(command: readonly string[], options: ProgramOptions): Promise<string> {
  const { code, signal, stdout, stderr } = await runProgram(command, options);
  if (code === 0) return stdout;
  throw new Error(`${command.join(' ')}: ${signal ?? `exit code ${code}`}\n${stdout}${stderr}`);
}

/** The folders of PATH that the machine has, without those of npm packages. */
export function machinePath(): string[] {
  return (process.env.PATH ?? '').split(':').filter((folder) => folder !== '' && !folder.includes('node_modules'));
}

const keptSettings = ['npm_config_registry', 'npm_config_cache', 'npm_config_userconfig', 'npm_config_proxy', 'npm_config_https_proxy'];

export function userEnvironment({ path = [], env = {} }: ProgramOptions): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => keptSettings.includes(name) || !/^(npm_|NODE|MILLRACE_|INIT_CWD$|PYTHON)/.test(name),
  );
  return { ...Object.fromEntries(inherited), PATH: [...path, ...machinePath()].join(':'), ...env };
}
