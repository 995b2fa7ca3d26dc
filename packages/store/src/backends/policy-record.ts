// The policy as the store keeps it: its version, and whether it is paused.

import type { PauseMode, PolicyState } from '@millrace/protocol';

export interface PolicyRecord {
  readonly state: PolicyState;
  /** Of the current pause. */
  readonly mode?: PauseMode;
  /** Who alone can end the current pause; absent if anyone can. */
  readonly owner?: string;
  /** The number of the newest pause. */
  readonly pause: number;
  /** How many resumes emptied the prefix caches of all backends. */
  readonly flushes: number;
  readonly policyVersion: number;
  /** The LoRA adapter that samples; absent for the base model. */
  readonly adapter?: string;
  /** Keeps prefixes that old weights computed from being used; absent while the caches hold none. */
  readonly cacheSalt?: string;
  /** Calls in flight over all workers, as last reported. */
  readonly generating: number;
  readonly sinceMs: number;
}

export interface ResumePolicy {
  readonly policyVersion?: number;
  readonly cachesFlushed: boolean;
  /** For a trainer that starts again from an earlier checkpoint. */
  readonly allowLower?: boolean;
  /** The LoRA adapter from now on; null for the base model, absent for the one before. */
  readonly adapter?: string | null;
  /** Whether new weights with unflushed caches get a new cache salt; they do by default. */
  readonly saltCaches?: boolean;
  /** Of the pause that it ends. */
  readonly owner?: string;
  /** Ends a pause of any owner. */
  readonly force?: boolean;
}
