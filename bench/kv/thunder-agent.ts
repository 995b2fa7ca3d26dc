// ThunderAgent's rule (arXiv 2602.13692, 4.3) on the simulated engines: programs reason or act; every five seconds the ones that wait are resumed
// while they fit, and acting ones are paused, the smallest first, while the active ones do not fit.

import type { SimEngine } from './engine.ts';
import type { SimSession, SimWorld, TurnPolicy } from './simulation.ts';

interface Program {
  readonly session: SimSession;
  isActing: boolean;
  actingSinceS: number;
  isPaused: boolean;
  /** It is paused at the end of its turn. */
  isMarked: boolean;
  go: (() => void) | undefined;
}

const intervalS = 5;
/** Tokens that are kept free for what each program samples. */
const buffer = 256;

interface ThunderOptions {
  /** Whether the tokens of acting programs count half as much after each second when others are resumed, as in the paper. */
  readonly hasDecay: boolean;
}

export function thunderAgent({ hasDecay }: ThunderOptions): (world: SimWorld) => TurnPolicy {
  return (world) => new ThunderAgent(world, hasDecay);
}

class ThunderAgent implements TurnPolicy {
  readonly #world: SimWorld;
  readonly #hasDecay: boolean;
  readonly #programs = new Map<number, Program>();

  constructor(world: SimWorld, hasDecay: boolean) {
    this.#world = world;
    this.#hasDecay = hasDecay;
    const tick = () => {
      this.#resume();
      for (const [index] of world.engines.entries()) this.#pause(index);
      world.after(intervalS, tick);
    };
    world.after(intervalS, tick);
  }

  ask(session: SimSession, go: () => void): void {
    const known = this.#programs.get(session.id);
    const program = known ?? { session, isActing: false, actingSinceS: 0, isPaused: false, isMarked: false, go: undefined };
    this.#programs.set(session.id, program);
    program.isActing = false;
    if (!known) program.isPaused = !this.#placeNew(program);
    if (program.isPaused) program.go = go;
    else go();
  }

  endTurn(session: SimSession): void {
    const program = this.#programs.get(session.id);
    if (!program) return;
    Object.assign(program, { isActing: true, actingSinceS: this.#world.now() });
    if (program.isMarked) Object.assign(program, { isMarked: false, isPaused: true });
  }

  endSession({ id }: SimSession): void {
    this.#programs.delete(id);
  }

  /** Only while none waits. */
  #placeNew(program: Program): boolean {
    if ([...this.#programs.values()].some(({ isPaused }) => isPaused)) return false;
    const free = this.#world.engines.map((_, index) => this.#remaining(index, { without: program }));
    const most = free.indexOf(Math.max(...free));
    if ((free[most] ?? 0) < program.session.tokens + buffer) return false;
    program.session.engine = most;
    return true;
  }

  #active(engine: number): Program[] {
    return [...this.#programs.values()].filter(({ session, isPaused }) => session.engine === engine && !isPaused);
  }

  #remaining(engine: number, { decays = false, without }: { readonly decays?: boolean; readonly without?: Program }): number {
    const now = this.#world.now();
    const capacity = (this.#world.engines[engine] as SimEngine).capacityTokens;
    return this.#active(engine)
      .filter((program) => program !== without)
      .reduce((left, { isActing, actingSinceS, isMarked, session: { tokens } }) => {
        if (isMarked && !decays) return left;
        return left - buffer - tokens * (decays && isActing ? 2 ** -(now - actingSinceS) : 1);
      }, capacity);
  }

  #pause(engine: number): void {
    const bySize = (a: Program, b: Program) => a.session.tokens - b.session.tokens;
    while (this.#remaining(engine, {}) < 0) {
      const active = this.#active(engine).filter(({ isMarked }) => !isMarked);
      const acting = active.filter(({ isActing }) => isActing).sort(bySize)[0];
      const reasoning = active.filter(({ isActing }) => !isActing).sort(bySize)[0];
      if (acting) acting.isPaused = true;
      else if (reasoning) reasoning.isMarked = true;
      else return;
    }
  }

  /** Those with a request first, then new ones, then those that act; the smallest of each first. The largest is placed first. */
  #resume(): void {
    const free = this.#world.engines.map((_, index) => this.#remaining(index, { decays: this.#hasDecay }));
    let left = free.filter((tokens) => tokens > buffer).reduce((sum, tokens) => sum + tokens, 0);
    const order = ({ isActing, session }: Program) => (isActing ? 2 : session.turn === 0 ? 1 : 0);
    const waiting = [...this.#programs.values()]
      .filter(({ isPaused }) => isPaused)
      .sort((a, b) => order(a) - order(b) || a.session.tokens - b.session.tokens);
    const chosen = waiting.filter(({ session: { tokens } }) => {
      if (tokens + buffer > left) return false;
      left -= tokens + buffer;
      return true;
    });
    for (const program of chosen.sort((a, b) => b.session.tokens - a.session.tokens)) {
      const most = free.indexOf(Math.max(...free));
      const need = program.session.tokens + buffer;
      if (need > (free[most] ?? 0)) continue;
      free[most] = (free[most] ?? 0) - need;
      program.session.engine = most;
      program.isPaused = false;
      const { go } = program;
      program.go = undefined;
      go?.();
    }
  }
}
