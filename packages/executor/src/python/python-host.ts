// A Python process that runs IPython cells, and its warm parent that has IPython imported and forks such processes one at a time.
// A host has pipes of its own, opened through its parent's /proc entry, so nothing that an earlier host left half-written is in them.

import { type ChildProcess, spawn } from 'node:child_process';
import { constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { offerToKernel, type ProgramLimits, renderLaunch, withoutTerminals } from '../process/launch.ts';
import { sendSignal } from '../process/processes.ts';
import { killSession } from '../shell/stop.ts';
import { encodeFrame, openFrameReader } from '../wire/frames.ts';
import { type Cell, type CellEnd, openCell } from './python-cell.ts';

export interface PythonOptions {
  readonly limits: ProgramLimits;
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  /** The program that the parent runs. */
  readonly script: string;
}

export interface PythonHost {
  readonly ended: Promise<void>;
  hasEnded(): boolean;
  run(code: Buffer, onOutput: (chunk: Buffer) => void): Promise<CellEnd>;
  interrupt(): void;
  /** With everything in its session. */
  kill(): void;
}

export interface PythonParent {
  hasEnded(): boolean;
  /** Only when the host before it has ended. `onLate` gets what arrives while no cell runs. Throws `PythonMissing`. */
  openHost(onLate: (chunk: Buffer) => void): Promise<PythonHost>;
}

/** There is no Python with IPython; the message is for the model. */
export class PythonMissing extends Error {}

/** How long a killed host may take to be told of: its parent may have been stopped. */
const killMs = 1000;
/** How long to read on after the end of a host where something else holds its pipes. */
const drainMs = 100;
const startMs = 60_000;
const replyLimits = { headBytes: 1 << 16, bodyBytes: 64 << 20 };
const remedy = 'An image gets it with `pip install ipython`, a Debian one also with `apt-get install ipython3`.';

interface Message {
  readonly event: 'ready' | 'host' | 'exit' | 'missing' | 'end';
  readonly [field: string]: unknown;
}

export function openPythonParent({ home, env, limits, script }: PythonOptions): PythonParent {
  const [file = '', ...args] = renderLaunch(['python3', script], limits);
  const options = { cwd: home, env: { ...env } };
  const child = withoutTerminals(['ignore', 'ignore', 'pipe', 'pipe'], (stdio) => spawn(file, args, { ...options, stdio }));
  if (child.pid !== undefined) offerToKernel(child.pid);
  const next = openMessages(child);
  const control = child.stdio[3] as Socket;
  control.on('error', () => {}); // its end is told by the process's
  let ended = false;
  child.once('exit', () => {
    ended = true;
  });
  child.once('error', () => {
    ended = true;
  });

  async function expect(event: Message['event']): Promise<Message> {
    const message = await next();
    if (message.event === event) return message;
    if (message.event === 'missing') throw new PythonMissing(`${message.message}. ${remedy}`);
    throw new PythonMissing(`Python could not be started: ${message.message ?? `${message.event} instead of ${event}`}. ${remedy}`);
  }
  return {
    hasEnded: () => ended,
    async openHost(onLate) {
      const timer = setTimeout(() => child.kill('SIGKILL'), startMs);
      try {
        const ready = await expect('ready');
        const pipes = openPipes(child.pid ?? 0, ready);
        control.write('go\n');
        const { pid } = await expect('host').catch((error) => {
          closePipes(pipes); // at which a host that was forked nevertheless ends
          throw error;
        });
        return openHost(Number(pid), pipes, { onLate, exit: next(), killParent: () => child.kill('SIGKILL') });
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/** The parent's messages in their order; after its end, for ever `end`. */
function openMessages(child: ChildProcess): () => Promise<Message> {
  const queue: Message[] = [];
  const waiting: ((message: Message) => void)[] = [];
  let last: Message | undefined;
  let said = '';
  const give = (message: Message) => {
    const waiter = waiting.shift();
    if (waiter) waiter(message);
    else queue.push(message);
  };
  const finish = (message: string) => {
    last = { event: 'end', message };
    for (const waiter of waiting.splice(0)) waiter(last);
  };
  child.stderr?.on('data', (chunk: Buffer) => {
    said = `${said}${chunk.toString('utf8')}`.slice(-2000);
  });
  child.once('error', (error) => finish(`there is no python3 in the PATH of this machine (${error.message})`));
  child.once('close', () => finish(said.trim() || 'it ended at once'));
  const control = child.stdio[3];
  if (control) createInterface({ input: control as Socket }).on('line', (line) => give(JSON.parse(line) as Message));
  return () => {
    const message = queue.shift() ?? last;
    return message ? Promise.resolve(message) : new Promise((resolve) => waiting.push(resolve));
  };
}

interface Pipes {
  readonly requests: Socket;
  readonly replies: Socket;
  readonly output: Socket;
}

function openPipes(parent: number, ready: Message): Pipes {
  const open = (descriptor: unknown, flags: number) => {
    const fd = openSync(`/proc/${parent}/fd/${Number(descriptor)}`, flags | constants.O_NONBLOCK);
    const writable = flags === constants.O_WRONLY;
    const socket = new Socket({ fd, readable: !writable, writable });
    return socket.on('error', () => {}); // a host that ends is told by its parent
  };
  return {
    requests: open(ready.requests, constants.O_WRONLY),
    replies: open(ready.replies, constants.O_RDONLY),
    output: open(ready.output, constants.O_RDONLY),
  };
}

function closePipes({ requests, replies, output }: Pipes): void {
  for (const pipe of [requests, replies, output]) pipe.destroy();
}

interface Life {
  readonly onLate: (chunk: Buffer) => void;
  /** What the parent says when the host has ended, or when it has ended itself. */
  readonly exit: Promise<Message>;
  readonly killParent: () => void;
}

function openHost(pid: number, pipes: Pipes, life: Life): PythonHost {
  const { requests, replies, output } = pipes;
  let running: Cell | undefined;
  let last: CellEnd | undefined;

  output.on('data', (chunk: Buffer) => {
    if (running) running.takeOutput(chunk);
    else life.onLate(chunk);
  });
  const readFrames = openFrameReader(replyLimits);
  replies.on('data', (chunk: Buffer) => {
    try {
      for (const frame of readFrames(chunk)) running?.takeFrame(frame);
    } catch {
      killSession(pid); // the cell wrote into its host's pipe
    }
  });
  const ended = life.exit.then(async (message) => {
    killSession(pid); // also where the parent died and the host lives on
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
        const nonce = Math.random().toString(36).slice(2, 14).padEnd(12, '0');
        const onEnd = (end: CellEnd) => {
          running = undefined;
          resolve(end);
        };
        running = openCell(nonce, { onOutput, onLate: life.onLate, onEnd, interrupt: () => sendSignal(pid, 'SIGINT') });
        requests.write(encodeFrame({ nonce }, code));
      }),
    interrupt: () => running?.interrupt(),
    kill() {
      killSession(pid);
      const timer = setTimeout(life.killParent, killMs);
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
