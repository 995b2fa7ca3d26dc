// The clock of a verdict: it counts the time that programs in sandboxes used themselves. While they sleep, it runs with the wall clock.
// While they are busy, it runs with their CPU time: a wait for a core, for the disk or for the machine's memory is not theirs.

import { readFileSync } from 'node:fs';
import { type Clock, systemClock } from '@millrace/base/clock';
import type { Sandbox, SandboxUse } from '../sandbox.ts';

/** Between two looks, on average. The times vary, so that no program can sleep between them. */
const lookMs = 500;
/** A look reads a dozen small files: the start and the end of a program come in pairs of them. */
const freshMs = 1;

interface Timer {
  readonly atMs: number;
  readonly callback: () => void;
}

interface WatchedSandbox {
  readonly sandbox: Pick<Sandbox, 'readUse'>;
  last: Pick<SandboxUse, 'cpuMs' | 'isBusy'>;
}

interface OwnClockOptions {
  readonly clock?: Clock;
  /** How long, in total, some process of the machine waited for a core, in milliseconds. */
  readonly readPressureMs?: () => number;
}

/** Counts nothing of the time before the first sandbox differently: without any, only waits of the whole machine for a core are left out. */
export class OwnClock implements Clock {
  readonly #clock: Clock;
  readonly #readPressureMs: () => number;
  readonly #watched = new Set<WatchedSandbox>();
  readonly #timers = new Set<Timer>();
  #ownMs = 0;
  #lookedAtMs: number;
  #pressureMs: number;
  #stopLooks: (() => void) | undefined;

  constructor({ clock = systemClock, readPressureMs = readMachinePressureMs }: OwnClockOptions = {}) {
    this.#clock = clock;
    this.#readPressureMs = readPressureMs;
    this.#lookedAtMs = clock.monotonic();
    this.#pressureMs = readPressureMs();
  }

  /** Counts the programs of this sandbox too, until the returned function is called. */
  watch(sandbox: Pick<Sandbox, 'readUse'>): () => void {
    this.#look();
    const watched = { sandbox, last: sandbox.readUse() };
    this.#watched.add(watched);
    return () => {
      this.#look();
      this.#watched.delete(watched);
    };
  }

  now(): number {
    return this.#clock.now();
  }

  monotonic(): number {
    this.#look();
    return this.#ownMs;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { atMs: this.monotonic() + ms, callback };
    this.#timers.add(timer);
    this.#schedule();
    return () => {
      this.#timers.delete(timer);
      if (this.#timers.size === 0) this.#stopLooking();
    };
  }

  #look(): void {
    const nowMs = this.#clock.monotonic();
    const wallMs = nowMs - this.#lookedAtMs;
    if (wallMs < freshMs) return;
    const pressureMs = this.#readPressureMs();
    let [cpuMs, wasBusy] = [0, false];
    for (const watched of this.#watched) {
      const use = watched.sandbox.readUse();
      cpuMs += Math.max(0, use.cpuMs - watched.last.cpuMs);
      wasBusy ||= use.isBusy || watched.last.isBusy;
      watched.last = use;
    }
    const waitedMs = this.#watched.size === 0 ? pressureMs - this.#pressureMs : 0;
    this.#ownMs += wasBusy ? Math.min(wallMs, cpuMs) : Math.max(0, wallMs - waitedMs);
    this.#lookedAtMs = nowMs;
    this.#pressureMs = pressureMs;
  }

  /** The clock is never faster than the wall, so nothing is due before the time that is left. */
  #schedule(): void {
    this.#stopLooking();
    const leftMs = Math.min(...[...this.#timers].map(({ atMs }) => atMs)) - this.#ownMs;
    const waitMs = Math.min(Math.max(1, leftMs), lookMs * (0.5 + Math.random()));
    this.#stopLooks = this.#clock.after(waitMs, () => {
      this.#look();
      for (const timer of [...this.#timers].filter(({ atMs }) => atMs <= this.#ownMs)) {
        this.#timers.delete(timer);
        timer.callback();
      }
      if (this.#timers.size > 0) this.#schedule();
    });
  }

  #stopLooking(): void {
    this.#stopLooks?.();
    this.#stopLooks = undefined;
  }
}

/** 0 where the kernel does not count it. */
function readMachinePressureMs(): number {
  try {
    return Number(/^some .*total=(\d+)/m.exec(readFileSync('/proc/pressure/cpu', 'latin1'))?.[1] ?? 0) / 1000;
  } catch {
    return 0; // a kernel without pressure files
  }
}
