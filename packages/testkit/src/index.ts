// What tests, benchmarks and examples share.

export { runAsUser, skipAsUser } from './as-user.ts';
export { type ChaosReport, type ChaosStore, runChaos } from './chaos/chaos.ts';
export { makeShellTask } from './chaos/scene/chaos-play.ts';
export { mountSmallDisk, type SmallDisk, smallDiskSkip } from './chaos/scene/small-disk.ts';
export { fakeLogprob } from './fake-backend/engines/logprob.ts';
export type { FakeEngine, FakeRequest } from './fake-backend/engines/wire.ts';
export { FakeBackend, openFakeBackend } from './fake-backend/fake-backend.ts';
export {
  type Fault,
  type FaultKind,
  type Faults,
  faultKinds,
  longTailLatency,
  randomFaults,
  scriptedFaults,
} from './fake-backend/faults.ts';
export type { FakeBackendOptions, Latency } from './fake-backend/options.ts';
export { type FakeBackendProcess, openFakeBackendProcess } from './fake-backend/process/process.ts';
export type { TokenizerDialect } from './fake-backend/tokenizer.ts';
export { type FakeTokens, openFakeTokens } from './fake-backend/tokens.ts';
export { findRegistry, openRegistry, type Registry } from './images/registry.ts';
export {
  findLlamaServer,
  type LlamaServer,
  type LlamaServerOptions,
  openLlamaServer,
  skipWithoutLlamaServer,
} from './models/llama-server.ts';
export { makeTinyModel } from './models/tiny-model.ts';
export {
  echoPolicy,
  FakeClock,
  fixedPolicy,
  type ModelFamily,
  makePythonImage,
  makeRandom,
  makeTempFolder,
  makeTinyImage,
  measureLoopBlock,
  modelFamilies,
  modelFolder,
  type Policy,
  type PolicyAnswer,
  type PolicyInput,
  qwen3Folder,
  renderCall,
  type Script,
  scriptedPolicy,
  type TempFolder,
  writeDockerArchive,
} from './plain/plain.ts';
export { findPostgres, type PostgresOptions, PostgresServer, skipPostgres } from './postgres/postgres-server.ts';
export {
  expandBody,
  findRecording,
  type RecordedExchange,
  type RecordedReply,
  type RecordedRequest,
  type Recording,
  type RecordingFile,
  type RepeatedEvent,
  readRecordings,
  recordingFile,
  recordingsFolder,
} from './recordings/recordings.ts';
export { type FaultReport, runFaults } from './service/fault-run.ts';
export { findWrongToken } from './service/find-wrong-token.ts';
export { TestMachine, type TestMachineOptions } from './service/machine.ts';
export { readPastEvents } from './service/past-events.ts';
export { processesInSandboxesOf, TestService } from './service/service.ts';
export { checkRolloutTrace, openTraceReceiver, type ReceivedSpan, type TraceReceiver } from './service/trace-receiver.ts';
export { type BackendContractOptions, type ContractBed, defineBackendContract } from './suites/backend-contract.ts';
export { type BackendSuiteOptions, defineBackendSuite } from './suites/backend-suite.ts';
export { type BlobBed, defineBlobSuite } from './suites/blobs/blob-suite.ts';
export { defineSandboxSuite } from './suites/sandbox/sandbox-suite.ts';
export {
  claimOne,
  makeFailure,
  makeReport,
  makeResult,
  makeRollout,
  makeTrajectory,
  moveUpTo,
  type OpenBed,
  type StoreBed,
} from './suites/store/bed/bed.ts';
export { makeBatch, makeGroup, makeTasks, toBatch, toGroup } from './suites/store/bed/bed-batches.ts';
export { type Course, SimulatedPipeline, type SimulatedPipelineOptions } from './suites/store/bed/simulated-pipeline.ts';
export { defineStoreSuite, defineWorkerStoreSuite } from './suites/store/store-suite.ts';
