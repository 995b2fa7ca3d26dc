// Measures the calls of a store: how long each took, from when it was made until its reply, with its wait for others.

import { systemClock } from '@millrace/base/clock';
import type { OperationLink, ReplyOf, TimedValue } from './operation-link.ts';
import type { Operations } from './operations.ts';

export interface StoreObserver {
  onCall(name: string, ms: number): void;
  /** Calls that ran in one transaction. */
  onTick(calls: number): void;
}

export function observeLink<All extends Operations>(link: OperationLink<All>, observer: StoreObserver | undefined): OperationLink<All> {
  return observer ? new ObservedLink(link, observer) : link;
}

class ObservedLink<All extends Operations> implements OperationLink<All> {
  readonly #link: OperationLink<All>;
  readonly #observer: StoreObserver;

  constructor(link: OperationLink<All>, observer: StoreObserver) {
    this.#link = link;
    this.#observer = observer;
  }

  async call<Name extends keyof All>(name: Name, request: Parameters<All[Name]>[1], nowMs: number): Promise<ReplyOf<All, Name>> {
    return (await this.timedCall(name, request, nowMs)).value;
  }

  async timedCall<Name extends keyof All>(
    name: Name,
    request: Parameters<All[Name]>[1],
    nowMs: number,
  ): Promise<TimedValue<ReplyOf<All, Name>>> {
    const startedAt = systemClock.monotonic();
    try {
      return await this.#link.timedCall(name, request, nowMs);
    } finally {
      this.#observer.onCall(String(name), systemClock.monotonic() - startedAt);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#link[Symbol.asyncDispose]();
  }
}
