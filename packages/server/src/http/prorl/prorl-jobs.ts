// The /process calls that this server answers. Each is recorded in the store before its rollout is, so that every server can cancel it.
// When this server dies, a caller that asks another one again gets the result of the same rollout.

import { randomUUID } from 'node:crypto';
import { sleep } from '@millrace/base/clock';
import { messageOf, RolloutError, type RolloutId, type Submission } from '@millrace/protocol';
import type { AppContext } from '../context/context.ts';
import { submitAll, toNewRollout, toRolloutId } from '../intake/intake.ts';

const leaseMs = 10_000;
/** How often a call looks whether the server of an earlier one lives. */
const lookMs = 500;
/** How long after its server died a job is continued by a call that repeats it. Later, its sample may be of weights long gone. */
const adoptMs = 600_000;

interface ProrlCall {
  readonly submission: Omit<Submission, 'id'>;
  readonly name: string | undefined;
  /** Of its content, whatever its id. */
  readonly digest: string;
}

export class ProrlJobs {
  readonly #context: AppContext;
  readonly #held = new Set<RolloutId>();
  /** Not that of a server which was started again: it knows nothing of the calls before. */
  readonly #server: string;
  #stopRenewing: (() => void) | undefined;

  constructor(context: AppContext) {
    this.#context = context;
    this.#server = `${context.server} ${randomUUID()}`;
  }

  /** Submits the rollout of a call, or continues that of a call that a server left behind. */
  async open(submission: Omit<Submission, 'id'>, name: string | undefined, signal: AbortSignal): Promise<RolloutId> {
    const call = { submission, name, digest: toNewRollout(toRolloutId('any'), submission).digest };
    const id = (name && (await this.#adopt(call.digest, name, signal))) || (await this.#submit(call));
    this.#held.add(id);
    this.#renewLater();
    return id;
  }

  async close(id: RolloutId): Promise<void> {
    this.#held.delete(id);
    if (this.#held.size === 0) {
      this.#stopRenewing?.();
      this.#stopRenewing = undefined;
    }
    const { store, log } = this.#context;
    // Left behind, it is dropped later.
    await store.closeProrlJob(id).catch((error) => log.error('prorl-job-save-failed', { rolloutId: id, error: messageOf(error) }));
  }

  /** A call that repeats one of another server waits until that server renews its lease, and then runs again, or is found to be dead. */
  async #adopt(digest: string, name: string, signal: AbortSignal): Promise<RolloutId | undefined> {
    const { store, clock, draining } = this.#context;
    const [server, ended] = [this.#server, AbortSignal.any([signal, draining])];
    for (let latestMs: number | undefined; ; ) {
      const adopted = await store.adoptProrlJob({ name, digest, server, leaseMs, maxAgeMs: adoptMs });
      if (adopted !== undefined) return adopted;
      const others = (await store.prorlJobs(name)).filter((job) => job.server !== server && job.digest === digest && job.isLive);
      const untilMs = Math.max(...others.map((job) => job.untilMs));
      if (others.length === 0 || untilMs > (latestMs ?? untilMs) || ended.aborted) return undefined;
      latestMs = untilMs;
      await sleep(lookMs, { clock, signal: ended }).catch(() => {}); // the caller is gone, or the service is closing
    }
  }

  /** As in the original, a second call for the same instance runs again, under its own id. */
  async #submit(call: ProrlCall): Promise<RolloutId> {
    const { name } = call;
    const fresh = () => toRolloutId(name === undefined ? `r-${randomUUID()}` : `${name.slice(0, 80)}.${randomUUID()}`);
    for (const id of name === undefined ? [fresh()] : [toRolloutId(name), fresh()]) if (await this.#tryCreate(id, call)) return id;
    throw new RolloutError('internal', 'a random id was already taken');
  }

  async #tryCreate(id: RolloutId, { submission, name, digest }: ProrlCall): Promise<boolean> {
    const job = { rollout: id, name, digest, server: this.#server, leaseMs };
    if (!(await this.#context.store.openProrlJob(job))) return false;
    try {
      const { rollouts } = await submitAll([toNewRollout(id, submission)], this.#context);
      if (rollouts[0]?.created === true) return true;
    } catch (error) {
      await this.close(id);
      if (error instanceof RolloutError && error.code === 'conflict') return false;
      throw error;
    }
    await this.close(id);
    return false;
  }

  #renewLater(): void {
    const { store, clock, log } = this.#context;
    this.#stopRenewing ??= clock.after(leaseMs / 3, async () => {
      await store
        .renewProrlJobs({ server: this.#server, leaseMs })
        .catch((error) => log.error('prorl-job-save-failed', { jobs: this.#held.size, error: messageOf(error) }));
      this.#stopRenewing = undefined;
      if (this.#held.size > 0) this.#renewLater();
    });
  }
}
