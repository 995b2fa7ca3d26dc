// One process of a scenario in Python: its start, its lines, and its end. It ends with this process; a process that does not answer is
// killed together with the programs that it started.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@millrace/base/clock';
import { findParts } from '@millrace/base/parts';
import { readCoreTime, sendSignal } from '@millrace/base/processes';
import { messageOf } from '@millrace/protocol';
import { type FromPython, fromPython, type PythonDescription, PythonError, type ToPython } from './wire.ts';

interface ProcessEvents {
  onMessage(message: Exclude<FromPython, { type: 'ready' | 'refused' | 'pong' }>): void;
  /** Called once, with what ended it. */
  onEnd(why: string): void;
  /** A line that the scenario printed. */
  onOutput(line: string): void;
}

export interface PythonTimes {
  /** How long the file may take to load. */
  readonly startMs: number;
  /** A process that answers nothing for this long while it has work is killed. */
  readonly hungMs: number;
}

/** Counts time in which this process runs: after a suspended machine wakes up, the scenario gets its time before it is called hung. */
function afterRunning(ms: number, callback: () => void, parts = 10): () => void {
  let stop = () => {};
  const wait = (left: number) => {
    stop = systemClock.after(ms / parts, () => (left === 1 ? callback() : wait(left - 1)));
  };
  wait(parts);
  return () => stop();
}

/** How often a process gets its time again because it had no core. */
const mostStarved = 9;
const keptOutput = 2000;
const drainMs = 200;

export class PythonProcess {
  readonly #child: ChildProcess;
  readonly #socket: Socket;
  readonly #python: string;
  readonly #events: ProcessEvents;
  readonly #times: PythonTimes;
  readonly #ready = Promise.withResolvers<PythonDescription>();
  #output = '';
  #endedBy: string | undefined;
  #isKilledFromOutside = false;
  #stopTimer = () => {};
  #calls = 0;

  constructor(file: string, times: PythonTimes, events: ProcessEvents) {
    this.#events = events;
    this.#times = times;
    this.#python = findPython(file);
    const env = { ...process.env, PYTHONUNBUFFERED: '1' };
    const main = fileURLToPath(findParts().pythonScenario);
    this.#child = spawn(this.#python, [main, file, '3'], { detached: true, env, stdio: ['ignore', 'pipe', 'pipe', 'pipe'] });
    this.#socket = this.#child.stdio[3] as Socket;
    this.#ready.promise.catch(() => {}); // handled by the code that waits for it, if any
    this.#listen();
    this.#stopTimer = afterRunning(times.startMs, () => this.kill(`it was not loaded within ${times.startMs / 1000} s`));
  }

  /** Rejects with a PythonError if the file cannot be used, and with an Error if the process ended. */
  get ready(): Promise<PythonDescription> {
    return this.#ready.promise;
  }

  get isAlive(): boolean {
    return this.#endedBy === undefined;
  }

  /** What ended it. */
  get endedBy(): string | undefined {
    return this.#endedBy;
  }

  /** By the machine that had no memory, or by a person. */
  get isKilledFromOutside(): boolean {
    return this.#isKilledFromOutside;
  }

  send(message: ToPython): void {
    if (this.isAlive) this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  /** From the begin of a call to its end, the process is watched and keeps this one running. */
  beginCall(): void {
    this.#calls += 1;
    if (this.#calls === 1) this.#hold();
  }

  endCall(): void {
    this.#calls -= 1;
    if (this.#calls === 0) this.#hold();
  }

  #hold(): void {
    for (const handle of [this.#child, this.#socket]) this.#calls > 0 ? handle.ref() : handle.unref();
    this.#watch();
  }

  kill(why: string): void {
    this.#end(why);
  }

  #listen(): void {
    const [stdout, stderr] = [this.#child.stdout as Socket, this.#child.stderr as Socket];
    const print = openLineReader((line) => {
      this.#output = `${this.#output}${line}\n`.slice(-keptOutput);
      this.#events.onOutput(line.toString('utf8'));
    });
    for (const stream of [stdout, stderr]) {
      stream.on('data', print);
      stream.unref();
    }
    this.#socket.on(
      'data',
      openLineReader((line) => this.#take(line)),
    );
    this.#socket.on('error', () => {}); // the end of the process follows
    this.#child.once('error', (error) => this.#end(`${this.#python} could not be started: ${error.message}`));
    this.#child.once('exit', (code, signal) => {
      // What it printed may still be on its way; a program that it started may hold the pipes for good.
      const end = () => {
        this.#isKilledFromOutside = this.isAlive && signal === 'SIGKILL';
        this.#end(`it ended with ${signal ?? `exit code ${code}`}`);
      };
      const stop = systemClock.after(drainMs, end);
      this.#child.once('close', () => {
        stop();
        end();
      });
    });
  }

  #take(line: Buffer): void {
    try {
      const message = fromPython.parse(JSON.parse(line.toString('utf8')));
      if (message.type === 'ready') {
        this.#stopTimer();
        this.#ready.resolve(message.scenario);
        this.#hold();
      } else if (message.type === 'refused') this.#ready.reject(new PythonError(message.error));
      else if (message.type === 'pong') this.#watch();
      else this.#events.onMessage(message);
    } catch (error) {
      this.kill(`it sent what is not a message: ${messageOf(error)}`);
    }
  }

  /** A third of the time is waited before the next question, the rest for its answer. */
  #watch(): void {
    this.#stopTimer();
    if (this.#calls === 0 || !this.isAlive) return;
    this.#stopTimer = systemClock.after(this.#times.hungMs / 3, () => {
      this.send({ type: 'ping' });
      this.#awaitPong(mostStarved);
    });
  }

  /** A process that waits for a core most of the time gets more of it. */
  #awaitPong(starved: number): void {
    const { hungMs } = this.#times;
    const { pid = 0 } = this.#child;
    const before = readCoreTime(pid);
    this.#stopTimer = afterRunning(hungMs, () => {
      const now = readCoreTime(pid);
      const isStarved = now.waitedMs - before.waitedMs > hungMs / 2 && now.ranMs - before.ranMs < hungMs / 2;
      if (isStarved && starved > 0) this.#awaitPong(starved - 1);
      else this.kill(`it did not answer for ${hungMs / 1000} s and was killed`);
    });
  }

  #end(why: string): void {
    if (!this.isAlive) return;
    this.#stopTimer();
    const printed = this.#output.trim();
    this.#endedBy = printed === '' ? why : `${why}; it printed last: ${printed.slice(-500)}`;
    this.#ready.reject(new Error(this.#endedBy));
    this.#socket.destroy();
    if (this.#child.pid !== undefined) sendSignal(-this.#child.pid, 'SIGKILL'); // also the programs that it started
    this.#events.onEnd(this.#endedBy);
  }
}

/** Returns the function that takes the pieces of a stream. A line may come in many; each is copied once. */
function openLineReader(onLine: (line: Buffer) => void): (chunk: Buffer) => void {
  let pieces: Buffer[] = [];
  return (chunk) => {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      pieces.push(chunk.subarray(from, at));
      const line = pieces.length === 1 ? (pieces[0] ?? Buffer.alloc(0)) : Buffer.concat(pieces);
      pieces = [];
      from = at + 1;
      onLine(line);
    }
    if (from < chunk.length) pieces.push(chunk.subarray(from));
  };
}

/** The virtual environment next to the file, otherwise the Python on the path; `MILLRACE_PYTHON` names another. */
function findPython(file: string, env: Readonly<Record<string, string | undefined>> = process.env): string {
  if (env.MILLRACE_PYTHON !== undefined && env.MILLRACE_PYTHON !== '') return env.MILLRACE_PYTHON;
  const own = join(dirname(file), '.venv/bin/python');
  return existsSync(own) ? own : 'python3';
}
