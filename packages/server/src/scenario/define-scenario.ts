// Declares a scenario, so that the type of its task is the one that its schema parses.

import type { Scenario } from './scenario.ts';

export function defineScenario<Task>(scenario: Scenario<Task>): Scenario<Task> {
  return scenario;
}
