// Python hosts, the processes that run IPython cells, and their parent, which has IPython imported and forks one host at a time.
// Each host has its own pipes, opened through its parent's /proc entry, so they never contain half-written data of an earlier host.

import { type ChildProcess, spawn } from 'node:child_process';
import { constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { ProgramLimits } from '@millrace/protocol';
import { makeNonce } from '../output/end-marker.ts';
import { preferAsOomVictim, renderLaunch, withoutTerminals } from '../process/launch.ts';
import { sendSignal } from '../process/processes.ts';
import { killSession } from '../shell/stop.ts';
import { encodeFrame, openFrameReader } from '../wire/frames.ts';
import { type CellEnd, openCell, type PythonCell } from './python-cell.ts';

export interface PythonSessionOptions {
  readonly limits: ProgramLimits;
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

interface ParentMessage {
  readonly event: 'ready' | 'host' | 'exit' | 'missing' | 'end';
  readonly [field: string]: unknown;
}

export function openPythonParent({ home, env, limits, script }: PythonSessionOptions): PythonParent {
  const [file = '', ...args] = renderLaunch(['python3', script], limits);
  const options = { cwd: home, env: { ...env } };
  const child = withoutTerminals(['ignore', 'ignore', 'pipe', 'pipe'], (stdio) => spawn(file, args, { ...options, stdio }));
  if (child.pid !== undefined) preferAsOomVictim(child.pid);
  const next = openMessages(child);
  const control = child.stdio[3] as Socket;
  control.on('error', () => {}); // the end of the process is its own event
  let ended = false;
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
      const timer = setTimeout(() => child.kill('SIGKILL'), startMs);
      try {
        const ready = await expect('ready');
        const pipes = openPipes(child.pid ?? 0, ready);
        control.write('go\n');
        const { pid } = await expect('host').catch((error) => {
          closePipes(pipes); // ends a host that was forked all the same
          throw error;
        });
        return openHost(Number(pid), pipes, { onLate, exit: next(), killParent: () => child.kill('SIGKILL') });
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/** Returns the parent's messages in order, and after its end always `end`. */
function openMessages(child: ChildProcess): () => Promise<ParentMessage> {
  const queue: ParentMessage[] = [];
  const waiting: ((message: ParentMessage) => void)[] = [];
  let last: ParentMessage | undefined;
  let stderr = '';
  const give = (message: ParentMessage) => {
    const waiter = waiting.shift();
    if (waiter) waiter(message);
    else queue.push(message);
  };
  const finish = (message: string) => {
    last = { event: 'end', message };
    for (const waiter of waiting.splice(0)) waiter(last);
  };
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr = `${stderr}${chunk.toString('utf8')}`.slice(-2000);
  });
  child.once('error', (error) => finish(`there is no python3 in the PATH of this machine (${error.message})`));
  child.once('close', () => finish(stderr.trim() || 'it ended at once'));
  const control = child.stdio[3];
  if (control) createInterface({ input: control as Socket }).on('line', (line) => give(JSON.parse(line) as ParentMessage));
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

function openPipes(parent: number, ready: ParentMessage): Pipes {
  const open = (descriptor: unknown, flags: number) => {
    const fd = openSync(`/proc/${parent}/fd/${Number(descriptor)}`, flags | constants.O_NONBLOCK);
    const writable = flags === constants.O_WRONLY;
    const socket = new Socket({ fd, readable: !writable, writable });
    return socket.on('error', () => {}); // the parent reports the end of the host
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
      killSession(pid); // the cell has written into its host's pipe
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
