// What other packages may use of the scenarios package, name by name.

export { callScenario } from './call-scenario.ts';
export { codeScenario } from './code/code.ts';
export { codeFields } from './code/code-task.ts';
export { findProgram } from './code/find-program.ts';
export { gradeProgram } from './code/grade.ts';
export { isSameOutput } from './code/output/compare-output.ts';
export { compareRuns } from './code/output/compare-runs.ts';
export { isSameJson } from './code/output/exact-json.ts';
export { toCodeTask } from './code/rows/convert-row.ts';
export { findTestFault } from './code/test-fault.ts';
export { defineTool } from './custom-tool.ts';
export { GatewayOutcome, type GatewayTask, gatewayScenarioName, gatewayTask } from './gateway.ts';
export { type GymConfig, gymConfig, gymTask } from './gym/gym-task.ts';
export { readHarborSubmissions } from './harbor/submissions.ts';
export {
  collectScenario,
  compactScenario,
  evaluateSandboxOf,
  evaluateScenario,
  evaluateTimeoutOf,
  highestRewardOf,
  initScenario,
  keyOf,
  lowestRewardOf,
  type Opened,
  parseTask,
  prepareScenario,
  runTimeoutOf,
  sandboxesOf,
  sandboxOf,
} from './hooks.ts';
export { type BuiltInOptions, loadScenarios, type Scenarios } from './load/load.ts';
export { judgeMath } from './math/judge-math.ts';
export { isDuringOwnCall, type SidecarOptions } from './python/sidecar.ts';
export { safeParseTask } from './read-task.ts';
export { toColumns, withoutRoutingFields } from './row.ts';
export { defineScenario, type InitContext, type Opening, type Scenario, type TaskTrial } from './scenario.ts';
export { ScenarioError } from './scenario-error.ts';
export { judgeConfig } from './stem/judge-config.ts';
export { judgeStem } from './stem/judge-stem.ts';
export { stemTask } from './stem/stem-task.ts';
export { findFault, judgeTests } from './swe/grade/verdict.ts';
export { logParserNames, logParserOf, toLogParserName } from './swe/logs/parse-log.ts';
export { filesOf } from './swe/rows/row.ts';
export { kindOf as sweRowKindOf, type RowKind as SweRowKind, rowKinds as sweRowKinds, toTask as toSweTask } from './swe/rows/rows.ts';
export type { AgentEnd, Respond } from './tools/agent-part.ts';
export { renderShellResult } from './tools/bash-tool.ts';
export { cutText } from './tools/cut-text.ts';
export { insertAfter, renderLines, replaceOnce } from './tools/editor-text.ts';
export { renderPythonResult } from './tools/ipython-tool.ts';
export { outsideConfig } from './tools/outside/outside-config.ts';
export { OutsideTools } from './tools/outside/outside-tools.ts';
export { type Prompts, readPrompts, renderPromptFiles } from './tools/prompts.ts';
export type { Tool } from './tools/tool.ts';
export { thinkTool } from './tools/tools.ts';
export { lintCheck } from './verifier/lint/lint-check.ts';
export type { Score } from './verifier/verifier.ts';
export { isShownFault } from './verifier/verifier-fault.ts';
