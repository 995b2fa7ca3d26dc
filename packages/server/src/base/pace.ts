// Takes a burst apart: of all who ask at once, one goes on in each turn of the event loop, so that a few hundred answers which
// arrive together hold up timers and sockets for no longer than one of them takes.

export class Pace {
  readonly #line: (() => void)[] = [];

  /** Resolves in a turn of the event loop that nobody else here gets; first come, first served. */
  turn(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#line.push(resolve) === 1) this.#callNext();
    });
  }

  #callNext(): void {
    setImmediate(() => {
      this.#line.shift()?.();
      if (this.#line.length > 0) this.#callNext();
    });
  }
}
