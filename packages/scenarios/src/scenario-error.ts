// The error that a scenario's author throws to name the blame for a rollout that cannot be scored.

/** Recognised by this key instead of its class: a scenario may hold another copy of this module than the service. */
const brand = Symbol.for('millrace.scenario-error');

export const scenarioBlames = ['task', 'policy', 'sandbox', 'verifier'] as const;
export type ScenarioBlame = (typeof scenarioBlames)[number];

/**
 * Ends the attempt with an explicit blame, and without a reward unless the policy is blamed:
 * - `task`: the task itself is broken, for example its data is missing
 * - `policy`: the agent did something that cannot be judged; the rollout is done with the lowest reward of the scenario
 * - `sandbox`: the sandbox or a service that judging depends on is not usable; the rollout is tried again
 * - `verifier`: the verifier could not measure the reward. If it can judge an agent that did nothing, that is blamed on the policy
 */
export class ScenarioError extends Error {
  readonly blame: ScenarioBlame;
  readonly [brand] = true;

  constructor(blame: ScenarioBlame, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.name = 'ScenarioError';
    this.blame = blame;
  }
}

export function isScenarioError(error: unknown): error is ScenarioError {
  return error instanceof Error && brand in error && 'blame' in error && scenarioBlames.some((blame) => blame === error.blame);
}
