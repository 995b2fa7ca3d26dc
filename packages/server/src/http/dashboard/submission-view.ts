// The submission of a rollout as a reader may see it: ready to be submitted again, and without secrets.

import type { DashboardTask } from '@millrace/protocol';
import { gatewayScenarioName } from '@millrace/scenarios';
import type { RolloutRecord } from '@millrace/store';

export function toSubmissionView({ id: _, ...submission }: RolloutRecord['submission']): DashboardTask {
  // The task of a gateway holds the secret that ends it.
  return { submission: submission.scenario === gatewayScenarioName ? { ...submission, task: {} } : submission };
}
