// The persistent Python session: runs one cell at a time and keeps variables from cell to cell. It starts with the first cell. No
// matter what a cell does to its process, the next cell has a working one, and the output says when variables were lost.

import type { PythonRunReply } from '@millrace/protocol';
import { type KeptOutput, openOutputCap } from '../output/output.ts';
import { renderOutput } from '../output/render.ts';
import { openStopper, type Stopper } from '../shell/stop.ts';
import type { CellEnd } from './python-cell.ts';
import { openPythonParent, type PythonHost, PythonMissing, type PythonParent, type PythonSessionOptions } from './python-host.ts';

export interface CellOptions {
  readonly timeoutMs: number;
  readonly capBytes: number;
  readonly restart: boolean;
  readonly signal: AbortSignal;
}

export interface PythonRun {
  readonly reply: PythonRunReply;
  /** The text, then the images. */
  readonly body: Buffer;
}

/** How long an interrupted cell has to end: a while, since on a busy machine it may get no core for a second. */
const interruptMs = 2000;
const killMs = 1000;
/** How much output between two cells is kept for the second one. */
const lateCap = 8192;

export class PythonSession {
  readonly #options: PythonSessionOptions;
  #parent: PythonParent | undefined;
  #host: PythonHost | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #late: Buffer = Buffer.alloc(0);

  constructor(options: PythonSessionOptions) {
    this.#options = options;
  }

  /** A call made while a cell runs waits for it. Its timeout starts when Python is ready for it. */
  run(code: Buffer, options: CellOptions): Promise<PythonRun> {
    const run = this.#turn.then(() => this.#run(code, options));
    this.#turn = run.catch(() => {}); // reported to the caller of that run
    return run;
  }

  async #run(code: Buffer, options: CellOptions): Promise<PythonRun> {
    const startMs = performance.now();
    const output = openOutputCap(options.capBytes);
    const toRun = (end: PythonRunReply['end'], cell?: CellEnd) => renderRun(end, output.end(), { cell, ms: performance.now() - startMs });
    if (options.signal.aborted) return toRun('cancelled');
    const host = await this.#ready(options.restart).catch((error) => {
      if (!(error instanceof PythonMissing)) throw error;
      output.push(Buffer.from(error.message));
    });
    if (!host) return toRun('missing');
    if (options.signal.aborted) return toRun('cancelled');
    output.push(this.#late);
    this.#late = Buffer.alloc(0);
    const stopper = openStopper(
      [
        [() => host.interrupt(), interruptMs],
        [() => host.kill(), killMs],
      ],
      options,
    );
    const cell = await host.run(code, output.push).finally(stopper.close);
    if (!cell.alive) this.#host = undefined;
    return toRun(toEnd(cell, stopper.reason()), cell);
  }

  async #ready(restart: boolean): Promise<PythonHost> {
    if (this.#host && !restart && !this.#host.hasEnded()) return this.#host;
    const wasLost = this.#host?.hasEnded() && !restart;
    this.#host?.kill();
    await this.#host?.ended;
    this.#late = wasLost ? Buffer.from(lostBetween) : Buffer.alloc(0);
    if (!this.#parent || this.#parent.hasEnded()) this.#parent = openPythonParent(this.#options);
    const late = (chunk: Buffer) => {
      this.#late = Buffer.concat([this.#late, chunk]).subarray(-lateCap);
    };
    this.#host = await this.#parent.openHost(late);
    return this.#host;
  }
}

const lostBetween = '[the Python process was killed between two cells; this is a new one, without its variables]\n';

function toEnd(cell: CellEnd, reason: ReturnType<Stopper['reason']>): PythonRunReply['end'] {
  if (reason) return reason;
  if (!cell.alive) return 'host-died';
  return cell.failed ? 'error' : 'ok';
}

function renderRun(
  end: PythonRunReply['end'],
  kept: KeptOutput,
  { cell, ms }: { readonly cell: CellEnd | undefined; readonly ms: number },
): PythonRun {
  const text = Buffer.from(renderOutput(kept));
  const { images, data } = cell?.alive ? cell : { images: [], data: Buffer.alloc(0) };
  const sizes = { text_bytes: text.length, total_bytes: kept.totalBytes, cut_bytes: kept.cutBytes };
  return { reply: { end, state_lost: cell?.alive === false, ...sizes, images, ms }, body: Buffer.concat([text, data]) };
}
