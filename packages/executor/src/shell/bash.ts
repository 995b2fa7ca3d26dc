// One bash on a pseudo-terminal. Bash's own output goes to /dev/null, so prompts and notices never mix with a command's output. Each
// command writes to the terminal and reads an empty standard input. A marker in the same stream is its end.

import { chmodSync, closeSync, constants, openSync, readdirSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ProgramLimits } from '@millrace/protocol';
import { makeNonce, openMarkerScan, renderEndCommand } from '../output/end-marker.ts';
import { preferAsOomVictim, renderLaunch } from '../process/launch.ts';

export interface BashOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The file from which bash reads commands; its folder belongs to the executor. */
  readonly commandFile: string;
  readonly limits: ProgramLimits;
}

/** `alive` is false if bash itself has ended. */
export interface CommandEnd {
  readonly alive: boolean;
  readonly exitCode: number;
}

export interface Bash {
  readonly pid: number;
  hasEnded(): boolean;
  run(command: Buffer, onOutput: (chunk: Buffer) => void): Promise<CommandEnd>;
  /** Makes bash print the end marker again: an interrupt may have discarded the line that prints it. */
  repeatMarker(): void;
  /** Resolves when bash has processed all earlier input and signals. */
  settle(): Promise<CommandEnd>;
  cwd(): string | undefined;
}

interface RunningCommand {
  readonly nonce: string;
  readonly scan: ReturnType<typeof openMarkerScan>;
  readonly onOutput: (chunk: Buffer) => void;
  readonly resolve: (end: CommandEnd) => void;
}

/** `onLate` receives output that arrives while no command runs: it comes from background processes. */
export async function openBash(options: BashOptions, onLate: (chunk: Buffer) => void): Promise<Bash> {
  const { cwd, env, commandFile } = options;
  // Loaded late, so that the executor is ready sooner.
  const { spawn } = await import('@lydell/node-pty');
  const [file = '', ...args] = renderLaunch(['/bin/bash', '--norc', '--noprofile', '--noediting', '-i'], options.limits);
  const terminal = spawn(file, args, { name: 'dumb', cols: 200, rows: 50, cwd, env: { ...env }, encoding: null });
  let running: RunningCommand | undefined;
  let last: CommandEnd | undefined;

  function finish(end: CommandEnd): void {
    running?.resolve(end);
    running = undefined;
  }
  terminal.onExit(({ exitCode, signal }) => {
    last = { alive: false, exitCode: signal ? 128 + signal : exitCode };
    finish(last);
  });
  terminal.onData((data) => {
    const chunk = Buffer.from(data); // the types say string, but without an encoding it is a Buffer
    if (!running) return onLate(chunk);
    const { output, end } = running.scan(chunk);
    if (output.length > 0) running.onOutput(output);
    if (!end) return;
    finish({ alive: true, exitCode: end.exitCode });
    if (end.rest.length > 0) onLate(end.rest);
  });
  function type(line: string, onOutput: (chunk: Buffer) => void): Promise<CommandEnd> {
    return new Promise((resolve) => {
      if (last) return resolve(last);
      const nonce = makeNonce();
      const typed = `${line}; ${renderEndCommand(nonce)}\n`;
      running = { nonce, scan: openMarkerScan(nonce), onOutput, resolve };
      terminal.write(typed);
    });
  }

  await type(prepare, () => {});
  preferAsOomVictim(terminal.pid); // before bash has answered, the process may still be a copy of the executor, which may not be changed
  return {
    pid: terminal.pid,
    hasEnded: () => last !== undefined,
    async run(command, onOutput) {
      writeCommand(commandFile, command);
      return type(` . ${commandFile} </dev/null >/dev/tty 2>&1`, onOutput);
    },
    repeatMarker() {
      if (running) terminal.write(` ${renderEndCommand(running.nonce)}\n`);
    },
    settle: () => type(' :', onLate),
    cwd: () => readCwd(terminal.pid),
  };
}

const prepare = ' stty -echo -onlcr; set +o history +H; PS1= PS2= PROMPT_COMMAND=; exec >/dev/null 2>&1';

/** The agent may have replaced the file by a folder, a link or a pipe without a reader, or filled the folder. */
function writeCommand(file: string, command: Buffer): void {
  try {
    writePlainFile(file, command);
  } catch {
    chmodSync(dirname(file), 0o700);
    for (const name of readdirSync(dirname(file))) rmSync(join(dirname(file), name), { recursive: true, force: true });
    writePlainFile(file, command);
  }
}

function writePlainFile(file: string, content: Buffer): void {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW, O_NONBLOCK } = constants;
  const descriptor = openSync(file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0o600);
  try {
    writeFileSync(descriptor, content);
  } finally {
    closeSync(descriptor);
  }
}

function readCwd(pid: number): string | undefined {
  try {
    const path = readlinkSync(`/proc/${pid}/cwd`);
    return statSync(path).isDirectory() ? path : undefined;
  } catch {
    return undefined; // bash has ended, or its directory was deleted
  }
}
