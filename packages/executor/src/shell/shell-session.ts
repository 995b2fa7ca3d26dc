// The persistent shell: runs one command at a time and keeps state from command to command. No matter what a command does to the
// shell, the next command has a working one, in the last working directory that still exists.

import { accessSync, constants } from 'node:fs';
import type { ProgramLimits, ShellRunReply } from '@millrace/protocol';
import { typedEcho } from '../output/end-marker.ts';
import { type KeptOutput, openOutputCap } from '../output/output.ts';
import { renderOutput } from '../output/render.ts';
import { killEverything } from '../process/launch.ts';
import { killSession } from '../process/processes.ts';
import type { OwnChildren } from '../process/reap.ts';
import { CallError } from '../wire/call-error.ts';
import { type Bash, type CommandEnd, openBash } from './bash.ts';
import { openStopper, settleBash, stepsForBash } from './stop.ts';

export interface ShellSessionOptions {
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  readonly commandFile: string;
  readonly limits: ProgramLimits;
  readonly children: OwnChildren;
}

export interface RunOptions {
  readonly timeoutMs: number;
  readonly capBytes: number;
  readonly signal: AbortSignal;
}

export interface ShellRun {
  readonly reply: ShellRunReply;
  readonly output: string;
}

/** A shell that has not read a command after this time never will. */
const patienceMs = 5000;
/** How much output of background processes between two commands is kept for the second one. */
const lateCap = 8192;

export class ShellSession {
  readonly #options: ShellSessionOptions;
  #bash: Promise<Bash | undefined>;
  #turn: Promise<unknown> = Promise.resolve();
  #cwd: string;
  #late: Buffer = Buffer.alloc(0);

  constructor(options: ShellSessionOptions) {
    this.#options = options;
    this.#cwd = options.home;
    this.#bash = this.#open();
  }

  /** A call made while a command runs waits for it. Its timeout starts when its command starts. */
  run(command: Buffer, options: RunOptions): Promise<ShellRun> {
    const run = this.#turn.then(() => this.#run(command, options));
    this.#turn = run.catch(() => {}); // reported to the caller of that run
    return run;
  }

  /** Returns undefined if no shell could be started; the next command tries again. */
  async #open(): Promise<Bash | undefined> {
    const { home, ...options } = this.#options;
    const late = (chunk: Buffer) => {
      this.#late = Buffer.concat([this.#late, chunk]).subarray(-lateCap);
    };
    if (!isUsable(this.#cwd)) this.#cwd = home;
    return openBash({ ...options, cwd: this.#cwd }, late).catch(() => undefined);
  }

  async #ready(): Promise<Bash> {
    const bash = await this.#bash;
    if (bash && !bash.hasEnded()) return bash;
    this.#bash = this.#open();
    const next = (await this.#bash) ?? (await this.#openByForce());
    this.#late = Buffer.from('[the shell was killed between two commands; this is a new one]\n');
    return next;
  }

  /** The agent's processes have used up what a shell needs, so they are killed first. */
  async #openByForce(): Promise<Bash> {
    killEverything();
    this.#bash = this.#open();
    const bash = await this.#bash;
    if (!bash)
      throw new CallError(
        'limit',
        'no shell can be started: this sandbox has no processes or no memory left, or its /bin/bash was replaced',
      );
    return bash;
  }

  async #run(command: Buffer, options: RunOptions): Promise<ShellRun> {
    const startMs = performance.now();
    const output = openOutputCap(options.capBytes);
    const bash = await this.#ready();
    if (options.signal.aborted) return toRun(output.end(), { end: 'cancelled', exit_code: null, cwd: this.#cwd, ms: 0 });
    output.push(this.#late);
    this.#late = Buffer.alloc(0);
    const stopper = openStopper(stepsForBash(bash), options);
    const end = await bash.run(command, output.push).finally(stopper.close);
    const reason = stopper.reason();
    const ms = performance.now() - startMs;
    const isBroken = end.problem === 'lost' || (end.problem === 'unread' && (!reason || ms > patienceMs));
    if (isBroken) killSession(bash.pid);
    const { alive } = end.alive && !isBroken && reason ? await settleBash(bash) : end;
    if (alive && !isBroken) this.#cwd = bash.cwd() ?? this.#cwd;
    else this.#bash = this.#open();
    if (isBroken && reason !== 'cancelled') return toRun(output.end(), { end: 'shell-broken', exit_code: null, cwd: this.#cwd, ms });
    const reply = { end: toEnd(end, reason), exit_code: end.exitCode, cwd: this.#cwd, ms: performance.now() - startMs };
    return toRun(output.end(), reply);
  }
}

function isUsable(directory: string): boolean {
  try {
    accessSync(directory, constants.X_OK);
    return true;
  } catch {
    return false; // deleted or not accessible: the shell starts in the home folder
  }
}

function toEnd(end: CommandEnd, reason: 'timeout' | 'cancelled' | undefined): ShellRunReply['end'] {
  if (reason === 'cancelled') return 'cancelled';
  if (end.alive) return reason ?? 'exited';
  return reason === 'timeout' ? 'shell-killed' : 'shell-exited';
}

function toRun(kept: KeptOutput, reply: Omit<ShellRunReply, 'total_bytes' | 'cut_bytes'>): ShellRun {
  return { reply: { ...reply, total_bytes: kept.totalBytes, cut_bytes: kept.cutBytes }, output: renderOutput(kept).replace(typedEcho, '') };
}
