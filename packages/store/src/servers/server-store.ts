// What several servers on one store agree on: which of them has a duty that one at a time is enough for, and the jobs of ProRL Agent's
// clients, so that any server can answer for another.

import type { RolloutId } from '@millrace/protocol';

/** What one server at a time does: `lead`: retention, expiry, and the metrics of the whole service; `sequence`: numbering the log. */
type DutyName = 'lead' | 'sequence';

export interface DutyRequest {
  readonly name: DutyName;
  readonly holder: string;
  /** 0 gives the duty up. */
  readonly leaseMs: number;
}

/** A call of /process that a server is to answer. */
export interface ProrlJob {
  readonly rollout: RolloutId;
  /** What its caller knows it by; several jobs may share it. */
  readonly name?: string | undefined;
  /** Of what it asks for: only a repeated call has the same. */
  readonly digest: string;
  readonly server: string;
  readonly leaseMs: number;
}

export interface ProrlState {
  readonly isRunning: boolean;
  /** Since the backends were last cleared by a client. */
  readonly clearedAgoMs?: number;
}

export interface ServerStore {
  /** Whether the caller has the duty for `leaseMs` from now: no one has it, its holder's lease ended, or the caller has it already. */
  takeDuty(request: DutyRequest): Promise<boolean>;

  prorlState(): Promise<ProrlState>;
  /** `start` and `stop` hold for all servers; `clear` records the time. */
  noteProrl(change: 'start' | 'stop' | 'clear'): Promise<void>;
  /** False if there is a job for this rollout. */
  openProrlJob(job: ProrlJob): Promise<boolean>;
  /**
   * Takes over a job with the same name and digest whose server's lease ended within `maxAgeMs`: its caller asks again. Returns its
   * rollout; absent if there is none.
   */
  adoptProrlJob(
    job: Omit<ProrlJob, 'rollout' | 'name'> & { readonly name: string; readonly maxAgeMs: number },
  ): Promise<RolloutId | undefined>;
  /** Renews the lease of all jobs of a server. */
  renewProrlJobs(request: Pick<ProrlJob, 'server' | 'leaseMs'>): Promise<void>;
  /** It was answered. */
  closeProrlJob(rollout: RolloutId): Promise<void>;
  /** All jobs, or those with this name, of live and of dead servers. */
  prorlJobs(name?: string): Promise<readonly OpenProrlJob[]>;
}

export interface OpenProrlJob extends Pick<ProrlJob, 'rollout' | 'digest' | 'server'> {
  /** When the lease of its server ends, unless it is renewed. */
  readonly untilMs: number;
  readonly isLive: boolean;
}
