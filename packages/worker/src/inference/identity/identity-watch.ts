// A worker's watch over one backend: whether the server that sampled a turn is the one that the record will name. It is proven before a turn
// if anything is in doubt, and after it if anything happened meanwhile that a restart would cause: a new connection, a failed call, another
// header or route. One proof serves all turns that ended before it began.

import { type Clock, sleep } from '@millrace/base/clock';
import type { Uncharged } from '@millrace/base/deadline';
import type { Log } from '@millrace/base/log';
import { raceSignal } from '@millrace/base/race';
import type { BackendProbe } from '@millrace/engines';
import { messageOf, RolloutError } from '@millrace/protocol';
import { findFault, isKnownInstance, isSameProbe } from '@millrace/store';

interface IdentityWatchOptions {
  /** What the store knows of the server. */
  readonly known: BackendProbe | undefined;
  /** The cheap question. */
  readInstance(options: WatchSignal): Promise<string | undefined>;
  /** All questions. */
  probe(options: WatchSignal): Promise<BackendProbe>;
  /** Tells the store, which decides for all workers whether this is another server, and returns what is known now. */
  note(found: BackendProbe): Promise<BackendProbe>;
  /** What is known has changed. If it is another server, no old connection may be used again. */
  onKnown(known: BackendProbe, isAnother: boolean): void;
  /** Whether what the logprobs are of should be known and is not. */
  lacksMode(known: BackendProbe): boolean;
  /** Of the weights that the record names. */
  policyVersion(): number;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
}

interface WatchSignal {
  readonly signal: AbortSignal;
}

interface WatchedTurn extends WatchSignal {
  /** Wraps the wait for a proof. */
  readonly uncharged: Uncharged;
}

/** A proof without a doubt counts for this long. */
const proofMs = 30_000;
/** A proof waits this many times as long as the last one took, so that proofs take a small share of a busy server. */
const restFactor = 4;
const longestRestMs = 1000;
/** The pause before a server that did not show its mode is asked again; it doubles each time. */
const firstAskMs = 5000;
const longestAskMs = 300_000;

export class IdentityWatch {
  readonly #options: IdentityWatchOptions;
  #known: BackendProbe;
  #servers = 0;
  #doubts = 1;
  /** The doubts that the last proof answered. */
  #answered = 0;
  #provenAt = Number.NEGATIVE_INFINITY;
  #restUntil = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #wantsMode = false;
  #askMs = firstAskMs;
  #askAt = Number.NEGATIVE_INFINITY;

  constructor(options: IdentityWatchOptions) {
    this.#options = options;
    this.#known = options.known ?? {};
  }

  get known(): BackendProbe {
    return this.#known;
  }

  /** How many servers this worker has seen here. */
  get servers(): number {
    return this.#servers;
  }

  /** Something happened that a restart would cause. */
  doubt(): void {
    this.#doubts += 1;
  }

  /** What the store knows, from any worker or from a join. True if that is another server. */
  adopt(known: BackendProbe = {}): boolean {
    const isOther = isAnother(this.#known, known);
    this.#known = known;
    if (!isOther) return false;
    this.#servers += 1;
    this.doubt();
    return true;
  }

  /** Before a turn. Returns what `confirm` needs after it; throws `backend-failed` if nothing may be sampled from the server. */
  async start({ signal, uncharged }: WatchedTurn): Promise<number> {
    const isOld = this.#options.clock.monotonic() - this.#provenAt > proofMs;
    if (isOld || this.#answered < this.#doubts) await uncharged(() => raceSignal(this.#prove(), signal));
    // The record says so too, but the worker may not have read it yet.
    const fault = findFault(this.#known);
    if (fault !== undefined) throw new RolloutError('backend-failed', fault);
    this.#askForMode();
    return this.#servers;
  }

  /** After a turn, before it is recorded. Throws `backend-failed` if it may have been sampled by another server than the one known. */
  async confirm(servers: number, { signal, uncharged }: WatchedTurn): Promise<void> {
    if (servers === this.#servers && this.#answered < this.#doubts) await uncharged(() => raceSignal(this.#prove(), signal));
    if (servers === this.#servers) return;
    throw new RolloutError('backend-failed', 'the server became another one during the turn, which is sampled again', {
      details: { reason: 'changed' },
    });
  }

  /** A proof that begins after this call. */
  #prove(): Promise<void> {
    if (!this.#running) return this.#startProof();
    this.#next ??= this.#running
      .catch(() => undefined) // those who wait for it get it
      .then(() => {
        this.#next = undefined;
        return this.#startProof();
      });
    return this.#next;
  }

  #startProof(): Promise<void> {
    const proof = this.#proveOnce().finally(() => {
      if (this.#running === proof) this.#running = undefined;
    });
    this.#running = proof;
    return proof;
  }

  async #proveOnce(): Promise<void> {
    const { readInstance, clock, signal } = this.#options;
    const restMs = this.#restUntil - clock.monotonic();
    if (restMs > 0) await sleep(restMs, { clock, signal });
    const doubts = this.#doubts;
    const beganAt = clock.monotonic();
    const isWhole = this.#wantsMode || (this.#known.instance === undefined && !this.#known.isSeveral);
    this.#wantsMode = false;
    const found = isWhole ? undefined : await readInstance({ signal });
    if (isKnownInstance(this.#known, found)) await this.#noteVersion();
    else await this.#noteProbe();
    this.#provenAt = clock.monotonic();
    this.#restUntil = this.#provenAt + Math.min(restFactor * (this.#provenAt - beganAt), longestRestMs);
    this.#answered = doubts;
  }

  /** Only what is new is written. */
  async #noteProbe(): Promise<void> {
    const { probe, note, signal } = this.#options;
    const found = await probe({ signal });
    if (isSameProbe(this.#known, found)) await this.#noteVersion();
    else this.#take(await note(found));
  }

  /** A resume has named a version: the store learns that this server was seen after it. */
  async #noteVersion(): Promise<void> {
    const provenVersion = this.#options.policyVersion();
    if (this.#known.provenVersion !== provenVersion) this.#take(await this.#options.note({ provenVersion }));
  }

  #take(known: BackendProbe): void {
    const isOther = isAnother(this.#known, known);
    this.#known = known;
    if (isOther) {
      this.#servers += 1;
      this.#askMs = firstAskMs;
    }
    this.#options.onKnown(known, isOther);
  }

  /** In the background: no turn waits for a server that was too slow to show it. */
  #askForMode(): void {
    const { lacksMode, clock, log } = this.#options;
    const nowMs = clock.monotonic();
    if (!lacksMode(this.#known) || nowMs < this.#askAt) return;
    this.#askAt = nowMs + this.#askMs;
    this.#askMs = Math.min(2 * this.#askMs, longestAskMs);
    this.#wantsMode = true;
    this.#prove().catch((error) => log.info('backend-mode-unknown', { error: messageOf(error) }));
  }
}

function isAnother({ generation: before = 1 }: BackendProbe, { generation = 1 }: BackendProbe): boolean {
  return before !== generation;
}
