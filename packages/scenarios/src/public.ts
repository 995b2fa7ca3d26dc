// The public API for scenario authors, published as `millrace/scenario`: everything needed to write a scenario, and nothing internal.

export type { Limits, Message, SamplingInput, Schema, StoppedBy, StopReason, ToolSpec } from '@millrace/protocol';
export type {
  ExecOptions,
  ExecResult,
  FileOptions,
  FolderArchive,
  FolderOptions,
  ListenOptions,
  OpenProgramOptions,
  ProgramOutput,
  PythonImage,
  PythonOptions,
  PythonResult,
  Sandbox,
  SandboxListener,
  SandboxProgram,
  SandboxSpec,
  ShellResult,
  TransferOptions,
} from '@millrace/sandbox';
export { z } from 'zod';
export { type CustomTool, type CustomToolContext, type CustomToolResult, defineTool } from './custom-tool.ts';
export {
  type AgentTurn,
  type CollectContext,
  type CompactContext,
  defineScenario,
  type EvaluateContext,
  type InitContext,
  type Opening,
  type Preparation,
  type Scenario,
  type TurnReply,
} from './scenario.ts';
export { type ScenarioBlame, ScenarioError } from './scenario-error.ts';
export type { AgentEnd } from './tools/agent-part.ts';
export { type McpChoice, type ToolChoice, type ToolName, toolChoice } from './tools/tool-names.ts';
export { lintCheck } from './verifier/lint/lint-check.ts';
export type { LintFinding, LintRule } from './verifier/lint/lint-finding.ts';
export { type CheckScript, runCheck } from './verifier/run-check.ts';
export { type Unpacked, unpackFolder } from './verifier/unpack-folder.ts';
export type { Score } from './verifier/verifier.ts';
