// A line on standard error that shows how far something is, with hints above it. On a terminal it is redrawn in place, at
// most ten times a second; elsewhere a plain line is written every few seconds.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Io } from './io.ts';
import { cut, openPaint, wantsColor } from './text.ts';

interface LiveLineOptions {
  /** One line narrower than `columns`. */
  render(columns: number): string;
  /** The line where standard error is not a terminal. */
  renderPlain(): string;
  /** Sentences about what is in the way; shown while they last. */
  hints?(): readonly string[];
}

export interface LiveLine {
  /** Redraws soon; cheap to call often. */
  update(): void;
  /** Writes a line that stays, above the live one. */
  say(text: string): void;
  /** Resolves after `ms`, or when the signal aborts. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
  /** Removes the live line. */
  close(): void;
}

const redrawMs = 100;
const plainMs = 5000;

export function openLiveLine(io: Io, options: LiveLineOptions): LiveLine {
  const screen = io.stderr.isTTY === true ? openTerminalLine(io, options) : openPlainLine(io, options);
  const timer = setInterval(screen.tick, io.stderr.isTTY === true ? redrawMs : plainMs);
  let isClosed = false;
  // The line is removed even when a broken pipe ends the process.
  process.once('exit', screen.wipe);
  return {
    update: screen.update,
    say(text) {
      screen.wipe();
      io.stderr.write(`${text}\n`);
      if (!isClosed) screen.draw();
    },
    async pause(ms, signal) {
      await sleep(ms, undefined, { signal }).catch(() => {}); // aborted: the caller checks the signal
    },
    close() {
      isClosed = true;
      clearInterval(timer);
      process.off('exit', screen.wipe);
      screen.wipe();
    },
  };
}

interface Screen {
  update(): void;
  tick(): void;
  draw(): void;
  wipe(): void;
}

function openTerminalLine({ stderr, env }: Io, { render, hints = () => [] }: LiveLineOptions): Screen {
  const paint = openPaint(wantsColor(stderr, env));
  let shown: readonly string[] = [];
  let isDirty = false;
  let ticks = 0;
  const clear = () => shown.map(() => '\r\x1b[K').join('\x1b[1A');
  const draw = () => {
    const columns = stderr.columns ?? 80;
    const next = [...hints().map((hint) => paint('yellow', cut(`! ${hint}`, columns - 1))), render(columns)];
    if (next.join('\n') === shown.join('\n')) return;
    stderr.write(`${clear()}${shown.length === 0 ? '\r' : ''}${next.join('\n')}`);
    shown = next;
  };
  draw();
  return {
    draw,
    update() {
      isDirty = true;
    },
    tick() {
      ticks += 1;
      // Rates and estimates change even when nothing happens.
      if (isDirty || ticks % 10 === 0) draw();
      isDirty = false;
    },
    wipe() {
      if (shown.length > 0) stderr.write(clear());
      shown = [];
    },
  };
}

function openPlainLine({ stderr }: Io, { renderPlain, hints = () => [] }: LiveLineOptions): Screen {
  let said: readonly string[] = [];
  const ignore = () => {};
  /** A hint is written once, when it appears. */
  const sayHints = () => {
    const now = hints();
    for (const hint of now) if (!said.includes(hint)) stderr.write(`! ${hint}\n`);
    said = now;
  };
  return {
    draw: ignore,
    update: sayHints,
    tick() {
      sayHints();
      stderr.write(`${renderPlain()}\n`);
    },
    wipe: ignore,
  };
}
