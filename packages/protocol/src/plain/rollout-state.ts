// The states and stages of a rollout. The table `moves` lists the legal moves between states, and `canMove` is the one function that
// reads it.

export const rolloutStates = ['queued', 'init', 'ready', 'run', 'evaluate', 'done', 'failed', 'cancelled'] as const;
export type RolloutState = (typeof rolloutStates)[number];

/**
 * Every live state can return to `queued`: after a retry, a lost worker or a hand-back the rollout starts again. From `run`, a rollout is
 * `done` without `evaluate` if the agent ended its sandbox or left nothing that can be collected: it has the lowest reward.
 */
export const moves: Record<RolloutState, readonly RolloutState[]> = {
  queued: ['init', 'failed', 'cancelled'],
  init: ['ready', 'queued', 'failed', 'cancelled'],
  ready: ['run', 'queued', 'failed', 'cancelled'],
  run: ['evaluate', 'done', 'queued', 'failed', 'cancelled'],
  evaluate: ['done', 'queued', 'failed', 'cancelled'],
  done: [],
  failed: [],
  cancelled: [],
};

export function canMove(from: RolloutState, to: RolloutState): boolean {
  return moves[from].includes(to);
}

export function isTerminal(state: RolloutState): boolean {
  return moves[state].length === 0;
}

export const stages = ['init', 'run', 'evaluate'] as const;
export type StageName = (typeof stages)[number];
