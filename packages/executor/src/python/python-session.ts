// The persistent Python session: one cell at a time, variables kept from cell to cell. It starts with its first cell; whatever a
// cell does to its process, the next cell finds a working one, and what was lost is said.

import type { PythonRunReply } from '@millrace/protocol';
import { type KeptOutput, openOutputCap } from '../output/output.ts';
import { renderOutput } from '../output/render.ts';
import { openStopper, type Stopper } from '../shell/stop.ts';
import type { CellEnd } from './python-cell.ts';
import { openPythonParent, type PythonHost, PythonMissing, type PythonOptions, type PythonParent } from './python-host.ts';

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

/** How long an interrupted cell has to end by itself, and a killed one to be gone. */
const graceMs = 1000;
/** How much of what is written between two cells is kept for the second. */
const lateCap = 8192;

export class PythonSession {
  readonly #options: PythonOptions;
  #parent: PythonParent | undefined;
  #host: PythonHost | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #late: Buffer = Buffer.alloc(0);

  constructor(options: PythonOptions) {
    this.#options = options;
  }

  /** Calls made while a cell runs wait for it; their time begins when Python is ready for them. */
  run(code: Buffer, options: CellOptions): Promise<PythonRun> {
    const run = this.#turn.then(() => this.#run(code, options));
    this.#turn = run.catch(() => {}); // the caller of that run hears of it
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
        [() => host.interrupt(), graceMs],
        [() => host.kill(), graceMs],
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
