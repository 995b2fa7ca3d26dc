// The counts that the moves of a transaction change. They are added up and written when a statement needs them, and before the commit. A
// trigger for each move would cost as much as the move itself: SQLite updates a table that has one in two passes.

import type { RolloutState } from '@millrace/protocol';
import { isTurn, type RolloutMove } from '../../transaction.ts';
import { states } from './class-schema.ts';

/** Which counts a statement needs. */
export type CountKind = 'states' | 'classes';

interface CountMark {
  readonly moves: number;
  readonly written: Readonly<Record<CountKind, number>>;
}

interface CountWriter {
  run(sql: string, ...values: (number | null)[]): number;
  lastEventId(): number;
}

interface ClassChange {
  queued: number;
  due: number;
  active: number;
  isServed: boolean;
}

const noneWritten = { states: 0, classes: 0 };

export class PendingCounts {
  readonly #writer: CountWriter;
  readonly #moves: RolloutMove[] = [];
  /** How many of the moves are in the tables. */
  #written: CountMark['written'] = noneWritten;

  constructor(writer: CountWriter) {
    this.#writer = writer;
  }

  note(move: RolloutMove): void {
    this.#moves.push(move);
  }

  /** For `undo`. */
  get mark(): CountMark {
    return { moves: this.#moves.length, written: this.#written };
  }

  /** What was noted since the mark was rolled back, and so was what was written since. */
  undo({ moves, written }: CountMark): void {
    this.#moves.splice(moves);
    this.#written = written;
  }

  clear(): void {
    this.undo({ moves: 0, written: noneWritten });
  }

  write(kind: CountKind): void {
    if (this.#written[kind] === this.#moves.length) return;
    const moves = this.#moves.slice(this.#written[kind]);
    this.#written = { ...this.#written, [kind]: this.#moves.length };
    if (kind === 'states') this.#writeStates(moves);
    else this.#writeClasses(moves);
  }

  #writeStates(moves: readonly RolloutMove[]): void {
    const count = (state: RolloutState) => moves.reduce((sum, { from, to }) => sum + Number(to === state) - Number(from === state), 0);
    this.#writer.run(addStates, ...states.map(count));
  }

  #writeClasses(moves: readonly RolloutMove[]): void {
    const changes = new Map<number, ClassChange>();
    for (const move of moves) {
      const { class: own, line, from, to } = move;
      const change = changes.get(own) ?? { queued: 0, due: 0, active: 0, isServed: false };
      changes.set(own, change);
      change.active += Number(isActive(to)) - Number(isActive(from));
      change.queued -= Number(from === 'queued');
      change.due -= Number(from === 'queued' && line === 'due');
      change.isServed ||= isTurn(move);
    }
    for (const [own, { queued, due, active, isServed }] of changes)
      if (queued !== 0 || active !== 0)
        this.#writer.run(addToClass, queued, due, active, isServed ? this.#writer.lastEventId() : null, own);
  }
}

const addStates = `UPDATE rollout_counts SET ${states.map((state) => `${state} = ${state} + ?`).join(', ')} WHERE id = 1`;
const addToClass = 'UPDATE classes SET queued = queued + ?, due = due + ?, active = active + ?, served = coalesce(?, served) WHERE seq = ?';

function isActive(state: RolloutState): boolean {
  return state === 'init' || state === 'ready' || state === 'run';
}
