// Lets a scenario in any folder import `millrace/scenario`, also where npm has not installed it: the import gives the copy that runs the
// service, so that both sides share one RolloutError and one version of the contract.

import { registerHooks } from 'node:module';
import { findParts } from '../base/parts.ts';

export function provideScenarioModule(): void {
  const url = findParts().scenario.href;
  registerHooks({
    resolve: (specifier, context, nextResolve) =>
      specifier === 'millrace/scenario' ? { url, format: undefined, shortCircuit: true } : nextResolve(specifier, context),
  });
}
