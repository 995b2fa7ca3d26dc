// Writes the turns of all rollouts of a worker to the log, in one append for each moment. No turn waits for it: what was not written when the
// worker died is sampled again.

import type { RolloutId, WorkerId } from '@millrace/protocol';
import type { Claim, Store, TurnAppend } from '@millrace/store';

export interface NewTurn {
  readonly claim: Claim;
  /** In the first turn of an attempt: the turn after which it continued, or 0. */
  readonly after?: number;
  readonly turn: number;
  readonly body: Uint8Array;
  onLogged(): void;
}

/** While the store is away, turns wait up to this many bytes. Then they are forgotten, and their rollouts are logged no more. */
const mostWaitingBytes = 256 << 20;

export class TurnLogWriter {
  readonly #store: Pick<Store, 'appendTurns'>;
  #waiting: NewTurn[] = [];
  #waitingBytes = 0;
  #flushing: Promise<void> = Promise.resolve();
  /** Attempts with a turn that was forgotten: later ones do not follow what the log has. */
  readonly #broken = new Set<string>();

  constructor(store: Pick<Store, 'appendTurns'>) {
    this.#store = store;
  }

  add(turn: NewTurn): void {
    if (this.#broken.has(keyOf(turn.claim))) return;
    this.#waiting.push(turn);
    this.#waitingBytes += turn.body.length;
    if (this.#waitingBytes <= mostWaitingBytes) return;
    for (const { claim } of this.#waiting) this.#broken.add(keyOf(claim));
    this.#waiting = [];
    this.#waitingBytes = 0;
  }

  forget(claim: Claim): void {
    this.#broken.delete(keyOf(claim));
    this.#waiting = this.#waiting.filter((turn) => keyOf(turn.claim) !== keyOf(claim));
    this.#waitingBytes = this.#waiting.reduce((sum, { body }) => sum + body.length, 0);
  }

  /** Writes everything that waits. If it fails, it waits again. */
  flush(): Promise<void> {
    const flushed = this.#flushing.then(() => this.#write());
    this.#flushing = flushed.catch(() => {}); // reported to the caller of that flush
    return flushed;
  }

  async #write(): Promise<void> {
    const turns = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    try {
      for (const [worker, some] of Map.groupBy(turns, ({ claim }) => claim.worker)) await this.#append(worker, some);
    } catch (error) {
      const later = this.#waiting;
      this.#waiting = [];
      for (const turn of [...turns, ...later]) this.add(turn);
      throw error;
    }
  }

  async #append(worker: WorkerId, turns: readonly NewTurn[]): Promise<void> {
    const appends = [...Map.groupBy(turns, ({ claim }) => keyOf(claim)).values()].flatMap(toAppend);
    const logged: ReadonlySet<RolloutId> = new Set(await this.#store.appendTurns(worker, appends));
    for (const { claim, onLogged } of turns) if (logged.has(claim.id)) onLogged();
  }
}

/** The turns of one attempt. */
function toAppend(turns: readonly NewTurn[]): TurnAppend[] {
  const [first] = turns;
  if (!first) return [];
  const { id, attempt } = first.claim;
  const after = first.after === undefined ? {} : { after: first.after };
  // A turn that was noted again, with its checkpoint, replaces the first.
  const latest = new Map(turns.map(({ turn, body }) => [turn, { turn, body }]));
  return [{ id, attempt, ...after, turns: [...latest.values()] }];
}

function keyOf({ id, attempt }: Claim): string {
  return `${id} ${attempt}`;
}
