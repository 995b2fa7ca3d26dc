// What a scenario imports as `millrace/scenario`: the contract's types and the few values that it needs.

export { RolloutError } from '@millrace/protocol';
export { z } from 'zod';
export type { ExecResult, Sandbox, SandboxSpec, ShellResult } from '../sandbox/sandbox.ts';
export { defineScenario } from './define-scenario.ts';
export type {
  AgentEnd,
  CollectContext,
  CompactContext,
  EvaluateContext,
  InitContext,
  Opening,
  Preparation,
  Scenario,
  Score,
} from './scenario.ts';
