// What to do about a failed rollout, by its error code: one sentence that `millrace show` prints under the failure.

import type { ErrorCode } from '@millrace/protocol';

const hints: Partial<Record<ErrorCode, string>> = {
  'sandbox-start-failed': 'Run `millrace doctor` on the machine of the worker.',
  'sandbox-died': 'The sandbox ended on its own. Check memory and disk on the machine of the worker.',
  'sandbox-killed': 'The agent killed its own sandbox; the policy can learn from it.',
  'sandbox-limit': 'The agent reached a limit of its sandbox. Raise it in the configuration if tasks need more.',
  'sandbox-refused':
    'The task asks for something that this machine does not allow, such as an image: `serve --driver apptainer` runs images.',
  'init-failed': 'The set-up of the task failed. Run its commands by hand to see why.',
  'init-timeout': 'The set-up took too long. Raise it with --limits init_timeout_s=SECONDS.',
  'run-failed': "The scenario's own code failed while the agent ran.",
  'backend-failed': 'No backend could finish the turn. Check them with `millrace backend ls`.',
  'backend-refused': "The backend refused the request. Its message says which field; check --dialect and the model's context length.",
  'backend-bad-reply': 'The backend answered in a form that its dialect does not have. Check --dialect.',
  'evaluate-failed': "The verifier failed, so there is no reward. Check the scenario's `evaluate`.",
  'evaluate-disturbed': 'The machine starved or killed what judges. Give it more cores or memory, or lower pipeline.evaluateSlots.',
  'evaluate-timeout': 'The verifier took too long. Raise it with --limits evaluate_timeout_s=SECONDS.',
  'artifact-too-large': 'The agent left more data than the verifier may read.',
  'too-stale': 'The weights changed too often while it ran. Raise --limits max_staleness=N.',
  'worker-lost': 'Its workers died too often. Check the log of the service.',
};

export function toFailureHint(code: ErrorCode): string | undefined {
  return hints[code];
}
