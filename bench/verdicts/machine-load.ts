// A machine that is too busy: loops on every core, writes to the disk, a group that thrashes in its own memory limit, and a hand that kills
// programs of verifiers at random. All of it ends with its owner.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { getPriority, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { sendSignal } from '@millrace/base/processes';

const diskWriters = 2;
/** A loop is a little nicer than a program of a sandbox: otherwise the run takes an hour, and shows nothing else. */
const niceness = Math.min(19, getPriority() + 5);
const killEveryMs = 4000;

export class MachineLoad implements Disposable {
  kills = 0;
  readonly #children: ChildProcess[] = [];
  readonly #folder = mkdtempSync(join(tmpdir(), 'load-'));
  readonly #group: string | undefined;
  readonly #timer: NodeJS.Timeout;

  /** `loops`: how many processes want a core all the time. */
  constructor(loops: number) {
    this.#group = openGroup();
    for (let at = 0; at < loops; at += 1) this.#start('while :; do :; done');
    for (let at = 0; at < diskWriters; at += 1)
      this.#start(`while :; do head -c 32M /dev/zero > ${this.#folder}/${at}; sync ${this.#folder}/${at}; done`);
    if (this.#group !== undefined)
      this.#start(
        `while :; do sh -c 'echo $$ > ${this.#group}/cgroup.procs; head -c 64M /dev/urandom | tail -c 40M > /dev/null'; done`, // the kernel kills it
      );
    this.#timer = setInterval(() => this.#kill(), killEveryMs);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    for (const { pid } of this.#children) if (pid !== undefined) sendSignal(-pid, 'SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true });
    setTimeout(() => this.#group !== undefined && rmdirSync(this.#group), 500);
  }

  #start(script: string): void {
    const child = spawn('/bin/sh', ['-c', script], { detached: true, stdio: 'ignore' });
    if (child.pid !== undefined) setPriority(child.pid, niceness);
    this.#children.push(child);
  }

  #kill(): void {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isOfVerifier(name));
    const pid = pids[Math.floor(Math.random() * pids.length)];
    if (pid === undefined) return;
    sendSignal(Number(pid), 'SIGKILL');
    this.kills += 1;
  }
}

/** Programs that only verifiers start: the runner of tests, compilers, checks and the tests of a repository. */
function isOfVerifier(pid: string): boolean {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return /^python3\0-I\0-c\0import ctypes|\/cc1plus\0|\/tmp\/check-\w+|unittest\0-v|^python3\0\/workspace\/double\.py/.test(words);
  } catch {
    return false; // it has ended
  }
}

/** A control group with little memory, where there can be one. */
function openGroup(): string | undefined {
  const folder = '/sys/fs/cgroup/memory/millrace-load';
  try {
    mkdirSync(folder);
    writeFileSync(join(folder, 'memory.limit_in_bytes'), String(24 << 20));
    return folder;
  } catch {
    return undefined; // not ours to make, or another version
  }
}
