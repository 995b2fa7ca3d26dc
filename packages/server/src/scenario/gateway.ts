// The scenario of a gateway: the agent runs elsewhere, and its caller measures the reward. It has no opening of its own.

import { GatewayOutcome, type GatewayTask, gatewayScenarioName, gatewayTask } from '../gateway/run-gateway.ts';
import type { Scenario } from './scenario.ts';
import { ScenarioError } from './scenario-error.ts';

export const gatewayScenario: Scenario<GatewayTask> = {
  name: gatewayScenarioName,
  task: gatewayTask,
  init: () => ({ messages: [{ role: 'user', content: 'The agent runs elsewhere.' }], tools: [], state: new GatewayOutcome() }),
  evaluate({ state }) {
    if (!(state instanceof GatewayOutcome) || state.reward === undefined) throw new ScenarioError('verifier', 'the gateway has no reward');
    return { reward: state.reward, details: { ...state.score, gateway: state.report } };
  },
};
