// Converts the policy's record to its wire view.

import type { PolicyView } from '@millrace/protocol';
import { type PolicyRecord, toTime } from '@millrace/store';

export function toPolicyView({ state, mode, owner, policyVersion, adapter, generating, sinceMs }: PolicyRecord): PolicyView {
  const optional = { mode: mode ?? null, owner: owner ?? null, adapter: adapter ?? null };
  return { state, ...optional, policy_version: policyVersion, generating, since: toTime(sinceMs) };
}
