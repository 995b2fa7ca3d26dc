// The saved turns of a rollout, and rollouts that begin after one of them.

import { randomUUID } from 'node:crypto';
import { type ForkInput, type ForkReply, forkReply, routes, type SavedTurn, savedTurnList, toPath } from '@millrace/protocol';
import type { CallOptions, Transport } from './transport.ts';

export interface Forks {
  /** The turns of a rollout that are saved, and whether it can be forked after each. */
  turns(id: string, options?: CallOptions): Promise<readonly SavedTurn[]>;
  /** Starts rollouts that share the rollout's tokens up to a turn, and its sandbox as it was then. */
  fork(id: string, fork?: ForkInput, options?: CallOptions): Promise<ForkReply>;
}

export function openForks(transport: Transport): Forks {
  return {
    turns: async (id, options = {}) =>
      (await transport.json({ method: 'GET', path: toPath(routes.listTurns.path, { id }), ...options }, savedTurnList)).turns,
    fork: (id, fork = {}, options = {}) => {
      const body = { id: `r-${randomUUID()}`, ...fork };
      return transport.json({ method: 'POST', path: toPath(routes.forkRollout.path, { id }), body, ...options }, forkReply);
    },
  };
}
