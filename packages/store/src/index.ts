// What other packages may use of the store package, name by name.

export { factsOf, findChange, findFault, isKnownInstance, isSameProbe, joinProbe, toSeveral } from './backends/identity.ts';
export {
  type BackendLoad,
  type CacheSize,
  type OldestOn,
  type PlacedRollout,
  type Placements,
  type PlaceOptions,
  probeTimeoutMs,
} from './backends/placements.ts';
export type { PolicyRecord } from './backends/policy-record.ts';
export { chooseBackend, defaultRouting, isFarBusier, type Routing } from './backends/routing.ts';
export type {
  BatchPlan,
  BatchRecord,
  GroupRecord,
  MoreTasks,
  NewBatch,
  NewGroup,
  OpenBatch,
  OpenGroup,
  Settlement,
  Sibling,
  SurplusGroup,
  Task,
  WebhookDue,
} from './batch-store.ts';
export { parseBlobPlace } from './blob-place.ts';
export type { BlobStore } from './blobs/blob-store.ts';
export { openBlobs } from './blobs/open-blobs.ts';
export { type Claim, type Ending, longestDelayMs } from './claim.ts';
export { type DiskLimits, unlimitedDisk } from './disk-budget.ts';
export type { EvaluationPlan, EvaluationRecord, NewEvaluation, ScoreCount, TaskRecord, UnbegunEvaluation } from './evaluation-store.ts';
export { EventTail, workerEvents } from './event-tail.ts';
export { type HintScope, openStore } from './open/open-store.ts';
export { openRemoteStore } from './remote/remote-store.ts';
export {
  awaitedKinds,
  eventsWait,
  isWorkerCall,
  runWorkerCall,
  toWireFault,
  type WorkerEventsPage,
  workerWire,
} from './remote/worker-calls.ts';
export { type RetentionAges, retentionConfig, toRetentionAges } from './retention-ages.ts';
export type { NewRollout, RolloutRecord } from './rollout-record.ts';
export { toRolloutView, toTime } from './rollout-view.ts';
export type { StoreObserver } from './rows/observe-link.ts';
export { isLostTrajectory } from './rows/stored-trajectory.ts';
export { Leadership } from './servers/leadership.ts';
export { backupStore, restoreStore } from './sqlite/admin/backup.ts';
export { type CompactReport, compactStore, compactWholeStore } from './sqlite/admin/compact.ts';
export { readStoreStats, type StoreStats } from './sqlite/admin/stats.ts';
export { openSqliteStore } from './sqlite/sqlite.ts';
export { openStoreReader } from './sqlite/store-reader.ts';
export type { ClaimedRollout, NewEvent, Store, StoreSize, WorkerRecord } from './store.ts';
export { hidePassword, isPostgresAddress, storeFile, toStoreAddress } from './store-address.ts';
export { storeConfig, toDiskLimits } from './store-config.ts';
export { StoreError, StoreFault } from './store-fault.ts';
export type { NewTrainerStep, TrainerStepRecord } from './trainer-store.ts';
export type { LoggedTurn, TurnAppend } from './turn-log.ts';
export { type ClassLoad, hasLabels, labelsOf, toScenarioLabel } from './work-class.ts';
export type { WorkerStore } from './worker-store.ts';
