// Converts the policy's record to its wire view.

import type { PolicyView } from '@millrace/protocol';
import type { PolicyRecord } from '../../inference/policy-gate.ts';
import { toTime } from '../../store/rollout-view.ts';

export function toPolicyView({ state, mode, policyVersion, adapter, generating, sinceMs }: PolicyRecord): PolicyView {
  return { state, mode: mode ?? null, policy_version: policyVersion, adapter: adapter ?? null, generating, since: toTime(sinceMs) };
}
