// Python hosts, the processes that run IPython cells, and their parent, which has IPython imported and forks one host at a time.
// Each host has its own pipes, opened through its parent's /proc entry, so they never contain half-written data of an earlier host.

import { spawn } from 'node:child_process';
import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { Socket } from 'node:net';
import type { ProgramLimits } from '@millrace/protocol';
import { makeNonce } from '../output/end-marker.ts';
import { preferAsOomVictim, renderLaunch, withoutTerminals } from '../process/launch.ts';
import { killSession, sendSignal } from '../process/processes.ts';
import { adopt, type OwnChildren } from '../process/reap.ts';
import { messageOf } from '../wire/call-error.ts';
import { encodeFrame, openFrameReader } from '../wire/frames.ts';
import { openMessages, type ParentMessage } from './parent-messages.ts';
import { type CellEnd, openCell, type PythonCell } from './python-cell.ts';

export interface PythonSessionOptions {
  readonly limits: ProgramLimits;
  readonly children: OwnChildren;
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  /** The Python file that the parent runs. */
  readonly script: string;
}

export interface PythonHost {
  readonly ended: Promise<void>;
  hasEnded(): boolean;
  run(code: Buffer, onOutput: (chunk: Buffer) => void): Promise<CellEnd>;
  interrupt(): void;
  /** Kills the host and every process in its session. */
  kill(): void;
}

export interface PythonParent {
  hasEnded(): boolean;
  /** Call it only after the previous host has ended. `onLate` receives output that arrives while no cell runs. Throws `PythonMissing`. */
  openHost(onLate: (chunk: Buffer) => void): Promise<PythonHost>;
}

/** There is no Python with IPython. The message is shown to the model. */
export class PythonMissing extends Error {}

/** How long the parent has to report that a killed host has ended; the parent itself may be stopped. */
const killMs = 1000;
/** How long to keep reading after the end of a host while another process holds its pipes. */
const drainMs = 100;
const startMs = 60_000;
const replyLimits = { headBytes: 1 << 16, bodyBytes: 64 << 20 };
const remedy = 'An image gets it with `pip install ipython`, a Debian one also with `apt-get install ipython3`.';

export function openPythonParent({ home, env, limits, children, script }: PythonSessionOptions): PythonParent {
  const [file = '', ...args] = renderLaunch(['python3', script], limits);
  const options = { cwd: home, env: { ...env } };
  const child = withoutTerminals(['ignore', 'ignore', 'pipe', 'pipe'], (stdio) => spawn(file, args, { ...options, stdio }));
  adopt(child, children);
  if (child.pid !== undefined) preferAsOomVictim(child.pid);
  const next = openMessages(child);
  const control = child.stdio[3] as Socket;
  control.on('error', () => {}); // the end of the process is its own event
  let ended = false;
  const kill = () => {
    ended = true;
    child.kill('SIGKILL');
  };
  child.once('exit', () => {
    ended = true;
  });
  child.once('error', () => {
    ended = true;
  });

  async function expect(event: ParentMessage['event']): Promise<ParentMessage> {
    const message = await next();
    if (message.event === event) return message;
    if (message.event === 'missing') throw new PythonMissing(`${message.message}. ${remedy}`);
    throw new PythonMissing(`Python could not be started: ${message.message ?? `${message.event} instead of ${event}`}. ${remedy}`);
  }
  return {
    hasEnded: () => ended,
    async openHost(onLate) {
      const timer = setTimeout(kill, startMs);
      await using undo = new AsyncDisposableStack();
      undo.defer(kill); // whatever went wrong, the next cell has a new parent
      try {
        const pipes = openPipes(child.pid ?? 0, await expect('ready'));
        undo.defer(() => closePipes(pipes)); // ends a host that was forked all the same
        control.write('go\n');
        const pid = toPid(await expect('host'));
        undo.move();
        return openHost(pid, pipes, { onLate, exit: next(), killParent: kill });
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/** A program of the agent may have written the message. */
function toPid({ pid }: ParentMessage): number {
  if (typeof pid === 'number' && Number.isInteger(pid) && pid > 1) return pid;
  throw new PythonMissing('Python could not be started: its parent process reported no process. Run the cell again.');
}

interface Pipes {
  readonly requests: Socket;
  readonly replies: Socket;
  readonly output: Socket;
}

/** A program of the agent may have written the message: the numbers may be those of any file, or of none. */
function openPipes(parent: number, { requests, replies, output }: ParentMessage): Pipes {
  using opened = new DisposableStack();
  const open = (descriptor: unknown, flags: number) => {
    const fd = openSync(`/proc/${parent}/fd/${Number(descriptor)}`, flags | constants.O_NONBLOCK);
    if (!fstatSync(fd).isFIFO()) {
      closeSync(fd);
      throw new Error(`file descriptor ${descriptor} is not a pipe`);
    }
    const writable = flags === constants.O_WRONLY;
    const socket = new Socket({ fd, readable: !writable, writable });
    opened.defer(() => socket.destroy());
    return socket.on('error', () => {}); // the parent reports the end of the host
  };
  try {
    const pipes = {
      requests: open(requests, constants.O_WRONLY),
      replies: open(replies, constants.O_RDONLY),
      output: open(output, constants.O_RDONLY),
    };
    opened.move();
    return pipes;
  } catch (error) {
    throw new PythonMissing(`Python could not be started: ${messageOf(error)}. Run the cell again.`);
  }
}

function closePipes({ requests, replies, output }: Pipes): void {
  for (const pipe of [requests, replies, output]) pipe.destroy();
}

interface HostContext {
  readonly onLate: (chunk: Buffer) => void;
  /** The parent's report that the host has ended, or the parent's own end. */
  readonly exit: Promise<ParentMessage>;
  readonly killParent: () => void;
}

function openHost(pid: number, pipes: Pipes, context: HostContext): PythonHost {
  const { requests, replies, output } = pipes;
  let running: PythonCell | undefined;
  let last: CellEnd | undefined;

  output.on('data', (chunk: Buffer) => {
    if (running) running.takeOutput(chunk);
    else context.onLate(chunk);
  });
  const readFrames = openFrameReader(replyLimits);
  replies.on('data', (chunk: Buffer) => {
    try {
      for (const frame of readFrames(chunk)) running?.takeFrame(frame);
    } catch {
      replies.destroy(); // the cell has written into its host's pipe, and may go on
      killSession(pid);
    }
  });
  const ended = context.exit.then(async (message) => {
    killSession(pid); // the parent may have died before the host
    await drain(output);
    closePipes(pipes);
    last = { alive: false, exitCode: Number(message.code ?? 137) };
    running?.end(last);
  });
  return {
    ended,
    hasEnded: () => last !== undefined,
    run: (code, onOutput) =>
      new Promise((resolve) => {
        if (last) return resolve(last);
        const nonce = makeNonce();
        const onEnd = (end: CellEnd) => {
          running = undefined;
          resolve(end);
        };
        running = openCell(nonce, { onOutput, onLate: context.onLate, onEnd, interrupt: () => sendSignal(pid, 'SIGINT') });
        requests.write(encodeFrame({ nonce }, code));
      }),
    interrupt: () => running?.interrupt(),
    kill() {
      killSession(pid);
      const timer = setTimeout(context.killParent, killMs);
      ended.finally(() => clearTimeout(timer));
    },
  };
}

function drain(output: Socket): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, drainMs);
    output.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    if (output.destroyed) resolve();
  });
}
