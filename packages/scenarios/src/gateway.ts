// The scenario of a gateway: the agent runs elsewhere, and its caller measures the reward. It has no opening of its own.

import { rewardRule, type ToolSpec } from '@millrace/protocol';
import { z } from 'zod';
import type { Scenario } from './scenario.ts';
import { ScenarioError } from './scenario-error.ts';

export const gatewayScenarioName = 'gateway';

/** The server writes it: a caller opens a gateway with `POST /v1/gateways`. */
export const gatewayTask = z.strictObject({
  key_sha256: z.string().regex(/^[0-9a-f]{64}$/),
  control: z.string().min(16).describe('What the server sends to end it.'),
  allow: z.array(z.string()).default([]),
  reward_rule: rewardRule,
  idle_timeout_s: z.number().gt(0).max(86_400).default(600),
});
export type GatewayTask = z.infer<typeof gatewayTask>;

/** What the agent's part leaves for its evaluation. */
export class GatewayOutcome {
  reward: number | undefined;
  score: Readonly<Record<string, unknown>> = {};
  /** Its branches, and what was not exact. */
  report: object | undefined;
  /** Of its first branch. */
  tools: readonly ToolSpec[] = [];
}

export const gatewayScenario: Scenario<GatewayTask> = {
  name: gatewayScenarioName,
  task: gatewayTask,
  init: () => ({ messages: [{ role: 'user', content: 'The agent runs elsewhere.' }], tools: [], state: new GatewayOutcome() }),
  evaluate({ state }) {
    if (!(state instanceof GatewayOutcome) || state.reward === undefined) throw new ScenarioError('verifier', 'the gateway has no reward');
    return { reward: state.reward, details: { ...state.score, gateway: state.report } };
  },
};
