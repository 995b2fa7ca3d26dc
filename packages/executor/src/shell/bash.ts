// One bash on a pseudo-terminal. Bash's own output goes to /dev/null, so prompts and notices never mix with a command's output. Each
// command writes to the terminal and reads an empty standard input. A marker in the same stream is its end.

import { readlinkSync, statSync } from 'node:fs';
import type { ProgramLimits } from '@millrace/protocol';
import { makeNonce, openMarkerScan, renderEndCommand, renderRunCommand } from '../output/end-marker.ts';
import { preferAsOomVictim, renderLaunch } from '../process/launch.ts';
import { killSession } from '../process/processes.ts';
import type { OwnChildren } from '../process/reap.ts';
import { startTimer } from '../process/timer.ts';
import { openReadCheck, writeCommand } from './command-file.ts';
import { watchBash } from './watch.ts';

export interface BashOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The file from which bash reads commands; its folder belongs to the executor. */
  readonly commandFile: string;
  readonly limits: ProgramLimits;
  readonly children: OwnChildren;
}

/** `alive` is false if bash itself has ended. */
export interface CommandEnd {
  readonly alive: boolean;
  readonly exitCode: number;
}

/** `lost`: bash was killed because it runs nothing any more. `unread`: it did not read the command; it was interrupted, or is broken. */
export interface RunEnd extends CommandEnd {
  readonly problem?: 'lost' | 'unread';
}

export interface Bash {
  readonly pid: number;
  hasEnded(): boolean;
  run(command: Buffer, onOutput: (chunk: Buffer) => void): Promise<RunEnd>;
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

/** `onLate` receives output that arrives while no command runs: it comes from background processes. Throws if bash does not start. */
export async function openBash(options: BashOptions, onLate: (chunk: Buffer) => void): Promise<Bash> {
  const { commandFile } = options;
  const { pid, type, repeatMarker, hasEnded } = await openTerminal(options, onLate);
  const wasRead = openReadCheck(commandFile);
  let isLost = false;
  const giveUp = () => {
    isLost = true;
    killSession(pid);
  };
  const timer = startTimer(startMs, giveUp);
  const { alive } = await type(prepare, () => {}).finally(() => clearTimeout(timer));
  if (!alive) throw new Error('bash did not start');
  preferAsOomVictim(pid); // before bash has answered, the process may still be a copy of the executor, which may not be changed
  return {
    pid,
    hasEnded,
    async run(command, onOutput) {
      writeCommand(commandFile, command);
      const watch = watchBash(pid, { wasRead, onIdle: repeatMarker, onBroken: giveUp });
      const end = await type(renderRunCommand(commandFile), onOutput).finally(watch.close);
      if (isLost) return { ...end, problem: 'lost' };
      return command.length === 0 || wasRead() ? end : { ...end, problem: 'unread' };
    },
    repeatMarker,
    settle: () => type(' :', onLate),
    cwd: () => readCwd(pid),
  };
}

/** A bash that was replaced by another program may never print a marker. Two starts fit into the time that a worker waits for a reply. */
const startMs = 5000;
const prepare = ' stty -echo -onlcr; set +o history +H; PS1= PS2= PROMPT_COMMAND=; exec >/dev/null 2>&1';

interface BashTerminal {
  readonly pid: number;
  hasEnded(): boolean;
  /** Types a line and resolves with its end marker, or with the end of bash. */
  type(line: string, onOutput: (chunk: Buffer) => void): Promise<CommandEnd>;
  repeatMarker(): void;
}

async function openTerminal({ cwd, env, limits, children }: BashOptions, onLate: (chunk: Buffer) => void): Promise<BashTerminal> {
  // Loaded late, so that the executor is ready sooner.
  const { spawn } = await import('@lydell/node-pty');
  const [file = '', ...args] = renderLaunch(['/bin/bash', '--norc', '--noprofile', '--noediting', '-i'], limits);
  const terminal = spawn(file, args, { name: 'dumb', cols: 200, rows: 50, cwd, env: { ...env }, encoding: null });
  children.add(terminal.pid);
  let running: RunningCommand | undefined;
  let last: CommandEnd | undefined;

  function finish(end: CommandEnd): void {
    running?.resolve(end);
    running = undefined;
  }
  terminal.onExit(({ exitCode, signal }) => {
    children.delete(terminal.pid);
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
  return {
    pid: terminal.pid,
    hasEnded: () => last !== undefined,
    type: (line, onOutput) =>
      new Promise((resolve) => {
        if (last) return resolve(last);
        const nonce = makeNonce();
        running = { nonce, scan: openMarkerScan(nonce), onOutput, resolve };
        terminal.write(`${line}; ${renderEndCommand(nonce)}\n`);
      }),
    repeatMarker() {
      if (running) terminal.write(` ${renderEndCommand(running.nonce)}\n`);
    },
  };
}

function readCwd(pid: number): string | undefined {
  try {
    const path = readlinkSync(`/proc/${pid}/cwd`);
    return statSync(path).isDirectory() ? path : undefined;
  } catch {
    return undefined; // bash has ended, or its directory was deleted
  }
}
