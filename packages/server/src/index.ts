// What other packages may use of the server, name by name.

export type { AgentEnd } from './agent/agent-end.ts';
export { OutsideTools } from './agent/outside/outside-tools.ts';
export { readPrompts, renderPromptFiles } from './agent/prompts.ts';
export { type Clock, sleep, systemClock } from './base/clock.ts';
export { Deadline, Expired } from './base/deadline.ts';
export { findOnPath } from './base/find-on-path.ts';
export { type Log, openLog, silentLog } from './base/log.ts';
export { openLoopLag } from './base/loop-lag.ts';
export { type Machine, readMachine } from './base/machine.ts';
export { networkFileSystemOf } from './base/network-file-system.ts';
export { Pace } from './base/pace.ts';
export { findParts, type Parts } from './base/parts.ts';
export { ProgramFailed, runProgram } from './base/run-program.ts';
export { Slots } from './base/slots.ts';
export { writeWhole } from './base/write-whole.ts';
export { chooseFreePort } from './cluster/free-port.ts';
export { openRootlessPostgres, type RootlessPostgres, type RootlessPostgresOptions } from './cluster/rootless-postgres.ts';
export { type SlurmConfig, type SlurmRole, slurmRoles } from './cluster/slurm-config.ts';
export { readConfig, type ServiceConfig, serviceConfig } from './config.ts';
export { renderConfigDoc } from './config-doc.ts';
export { harnessCatalog } from './harness/catalog/catalog.ts';
export { type Harness, harness } from './harness/harness.ts';
export { installHarness } from './harness/install-harness.ts';
export { type HarnessEnd, runHarness } from './harness/run-harness.ts';
export type { Backend, BackendRecord, GenerateRequest, Generation } from './inference/backends/backend.ts';
export { openBackend } from './inference/backends/open-backend.ts';
export { openVllmBackend } from './inference/backends/vllm.ts';
export { PolicyGate, type PolicyRecord } from './inference/policy-gate.ts';
export type { BackendLease } from './inference/pool/lease.ts';
export { BackendPool } from './inference/pool/pool.ts';
export { sampleTokenizer, type TokenizerSample } from './inference/pool/tokenizer-check.ts';
export { Sampler } from './inference/sampler.ts';
export { logEvents, renderLogEvents } from './log-events.ts';
export { type ModelReport, reportModel } from './model-report.ts';
export { isAddress } from './open-model.ts';
export { AttemptRecord, type Prepared } from './pipeline/attempt/attempt-record.ts';
export { ControlResults } from './pipeline/attempt/control-results.ts';
export { evaluateAttempt } from './pipeline/attempt/evaluate.ts';
export { findDisturbance, OwnTime } from './pipeline/attempt/own-time.ts';
export { collectAttempt } from './pipeline/attempt/run-settled.ts';
export { Stage } from './pipeline/attempt/stage.ts';
export { initAttempt, type StageDeps } from './pipeline/attempt/stages.ts';
export { BatchKeeper, type KeeperDeps } from './sampling/batch-keeper.ts';
export { toRecipe } from './sampling/new-siblings.ts';
export { TaskFiles } from './sampling/task-files.ts';
export { type ApptainerOptions, openApptainerDriver } from './sandbox/apptainer/apptainer.ts';
export { type ApptainerProbe, probeApptainer } from './sandbox/apptainer/probe.ts';
export { type BubblewrapOptions, openBubblewrapDriver } from './sandbox/bubblewrap/bubblewrap.ts';
export { type BubblewrapProbe, probeBubblewrap } from './sandbox/bubblewrap/probe.ts';
export { type SandboxConfig, type SandboxLimits, sandboxConfig } from './sandbox/config.ts';
export { findApptainer } from './sandbox/images/apptainer-program.ts';
export { type CachedImage, ImageCache, type ImageCacheOptions, type ImageLease } from './sandbox/images/image-cache.ts';
export { LayerCache, type LayerCacheOptions, type LayerLease, type LayerPlan } from './sandbox/layers/layer-cache.ts';
export { holdLayers } from './sandbox/layers/layer-holding.ts';
export { type CgroupBase, controllers, findCgroups } from './sandbox/limits/cgroups.ts';
export { openLimiter } from './sandbox/limits/limits.ts';
export { measureSocketPath } from './sandbox/run-folder/run-folder.ts';
export type {
  ExecOptions,
  ExecResult,
  LayerRequest,
  ListenOptions,
  OpenOptions,
  PythonImage,
  PythonOptions,
  PythonResult,
  Sandbox,
  SandboxDriver,
  SandboxListener,
  SandboxProgram,
  SandboxSpec,
  ShellResult,
  TransferOptions,
} from './sandbox/sandbox.ts';
export { idleMiB, openWarmPool, type WarmPool, type WarmPoolOptions } from './sandbox/warm/warm-pool.ts';
export { isSameAnswer } from './scenario/answer/compare-answers.ts';
export { findAnswer } from './scenario/answer/find-answer.ts';
export { codeFields } from './scenario/code/code-task.ts';
export { gradeProgram } from './scenario/code/grade.ts';
export { isSameOutput } from './scenario/code/output/compare-output.ts';
export { isSameJson } from './scenario/code/output/exact-json.ts';
export { type HarborFault, type HarborSubmission, readHarborSubmissions } from './scenario/harbor/submissions.ts';
export { evaluateTimeoutOf, highestRewardOf, lowestRewardOf, parseTask } from './scenario/hooks.ts';
export { loadScenarios, type Scenarios } from './scenario/load/load.ts';
export { safeParseTask } from './scenario/read-task.ts';
export type {
  CollectContext,
  CompactContext,
  EvaluateContext,
  InitContext,
  Opening,
  Preparation,
  Scenario,
  TaskTrial,
  TrialContext,
} from './scenario/scenario.ts';
export { findFault, judgeTests } from './scenario/swe/grade/verdict.ts';
export { logParserNames, logParserOf, toLogParserName } from './scenario/swe/logs/parse-log.ts';
export {
  kindOf as sweRowKindOf,
  type RowKind as SweRowKind,
  rowKinds as sweRowKinds,
  toTask as toSweTask,
} from './scenario/swe/rows/rows.ts';
export type { Score } from './scenario/verifier/verifier.ts';
export {
  openDriver,
  openLayers,
  openServer,
  openServiceStore,
  openWorker,
  type ProcessOptions,
  type RunningServer,
  type RunningWorker,
  StartError,
} from './service.ts';
export { type Check, checkModel, checkPort, checkRunFolder, lookAtBackend, type ModelCheck, runStartChecks } from './start-checks.ts';
export type {
  BatchPlan,
  BatchRecord,
  BatchStore,
  GroupRecord,
  MoreTasks,
  NewBatch,
  NewGroup,
  OpenBatch,
  OpenGroup,
  Settlement,
  SurplusGroup,
  Task,
} from './store/batch-store.ts';
export type { BlobEntry, BlobStore } from './store/blobs/blob-store.ts';
export { openFolderBlobs } from './store/blobs/folder-blobs.ts';
export { openBlobs } from './store/blobs/open-blobs.ts';
export type { EvaluationRecord, EvaluationStore, NewEvaluation, TaskRecord } from './store/evaluation-store.ts';
export { EventTail } from './store/event-tail.ts';
export { openStore } from './store/open/open-store.ts';
export type { NewRollout, RolloutRecord } from './store/rollout-record.ts';
export { type BackupReport, backupStore, restoreStore } from './store/sqlite/admin/backup.ts';
export { type CompactReport, compactStore, compactWholeStore } from './store/sqlite/admin/compact.ts';
export { readStoreStats, type StoreStats } from './store/sqlite/admin/stats.ts';
export { openSqliteStore } from './store/sqlite/sqlite.ts';
export type {
  Claim,
  ClaimedRollout,
  Ending,
  ListFilter,
  NewEvent,
  Store,
  SubmitOutcome,
  WorkerRecord,
} from './store/store.ts';
export { hidePassword, isPostgresAddress, storeFile, toStoreAddress } from './store/store-address.ts';
export type { ClassLoad, WorkClass } from './store/work-class.ts';
export { Supervisor, type SupervisorOptions } from './supervisor.ts';
export { type LogFormat, logFormats, openProcessLog, openTextLog } from './text-log.ts';
export { openToolServer, type RunningToolServer, type ToolServerOptions } from './tool-service.ts';
export { appendNext, renderResults } from './trajectory/branch.ts';
export { type Conversation, type LocalConversation, openConversation } from './trajectory/conversation.ts';
export { Ledger } from './trajectory/ledger.ts';
export { openRemoteConversation } from './trajectory/remote-conversation.ts';
export { openTokenizer, runSteps, type Tokenizer } from './trajectory/tokenizer/tokenizer.ts';
export { toolParserNames } from './trajectory/tool-calls/tool-parsers.ts';
