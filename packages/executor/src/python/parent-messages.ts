// The messages of the Python parent: JSON lines on a socket that a program of the agent can take over and write to. A line that the parent
// would not send ends the parent, and no amount of them takes the executor's memory.

import type { ChildProcess } from 'node:child_process';
import { sendSignal } from '../process/processes.ts';

const events = ['ready', 'host', 'exit', 'missing', 'end'] as const;

export interface ParentMessage {
  readonly event: (typeof events)[number];
  readonly [field: string]: unknown;
}

/** How long to read after the end of the parent while another process holds its files open. */
const drainMs = 200;
const longestLine = 4096;
const longestQueue = 16;
const keptErrorCharacters = 2000;

/** Returns the parent's messages in order, and after its end always `end`. */
export function openMessages(child: ChildProcess): () => Promise<ParentMessage> {
  const queue: ParentMessage[] = [];
  const waiting: ((message: ParentMessage) => void)[] = [];
  let last: ParentMessage | undefined;
  let stderr = '';
  let isRefused = false;
  const refuse = () => {
    isRefused = true;
    child.stdio[3]?.destroy();
    if (child.pid !== undefined) sendSignal(child.pid, 'SIGKILL');
  };
  const give = (message: ParentMessage) => {
    if (isRefused) return;
    const waiter = waiting.shift();
    if (waiter) waiter(message);
    else if (queue.push(message) > longestQueue) refuse();
  };
  const finish = (message: string) => {
    last = { event: 'end', message };
    for (const waiter of waiting.splice(0)) waiter(last);
  };
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr = `${stderr}${chunk.toString('utf8')}`.slice(-keptErrorCharacters);
  });
  child.once('error', (error) => finish(`there is no python3 in the PATH of this machine (${error.message})`));
  const end = () => finish(stderr.trim() || 'it ended at once');
  child.once('close', end);
  child.once('exit', () => setTimeout(end, drainMs));
  const readLines = openLines(give, refuse);
  child.stdio[3]?.on('data', readLines);
  return () => {
    const message = queue.shift() ?? last;
    return message ? Promise.resolve(message) : new Promise((resolve) => waiting.push(resolve));
  };
}

function openLines(give: (message: ParentMessage) => void, refuse: () => void): (chunk: Buffer) => void {
  let held = '';
  return (chunk) => {
    const lines = `${held}${chunk.toString('utf8')}`.split('\n');
    held = lines.pop() ?? '';
    const messages = lines.map(parseMessage);
    if (held.length > longestLine || messages.includes(undefined)) return refuse();
    for (const message of messages) if (message) give(message);
  };
}

function parseMessage(line: string): ParentMessage | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isMessage(value) ? value : undefined;
  } catch {
    return undefined; // not JSON: refused like any other line that the parent does not send
  }
}

function isMessage(value: unknown): value is ParentMessage {
  return typeof value === 'object' && value !== null && 'event' in value && events.some((event) => event === value.event);
}
