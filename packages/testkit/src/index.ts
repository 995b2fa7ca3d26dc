// What tests, benchmarks and examples share, name by name.

export { type BackendSuiteOptions, defineBackendSuite } from './backend-suite.ts';
export { type ChaosReport, findWrongToken, runChaos } from './chaos.ts';
export { writeDockerArchive } from './docker-archive.ts';
export { FakeBackend, type FakeBackendOptions, type Latency, openFakeBackend } from './fake-backend.ts';
export {
  type Fault,
  type FaultKind,
  type Faults,
  faultKinds,
  longTailLatency,
  makeRandom,
  randomFaults,
  scriptedFaults,
} from './fake-backend-faults.ts';
export { type FakeBackendProcess, openFakeBackendProcess } from './fake-backend-process.ts';
export { type FakeTokens, openFakeTokens } from './fake-backend-tokens.ts';
export type { FakeRequest } from './fake-backend-wire.ts';
export { FakeClock } from './fake-clock.ts';
export { fakeLogprob } from './fake-logprob.ts';
export type { TokenizerDialect } from './fake-tokenizer.ts';
export { type FaultReport, runFaults } from './fault-run.ts';
export { findLlamaServer, type LlamaServer, type LlamaServerOptions, openLlamaServer, skipWithoutLlamaServer } from './llama-server.ts';
export { type ModelFamily, modelFamilies, modelFolder } from './model-folders.ts';
export {
  echoPolicy,
  fixedPolicy,
  type Policy,
  type PolicyAnswer,
  type PolicyInput,
  renderCall,
  type Script,
  scriptedPolicy,
} from './policy.ts';
export { qwen3Folder } from './qwen3.ts';
export { defineSandboxSuite } from './sandbox-suite.ts';
export { processesInSandboxesOf, TestService } from './service.ts';
export { type Course, SimulatedPipeline, type SimulatedPipelineOptions } from './simulated-pipeline.ts';
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
} from './store-bed.ts';
export { makeBatch, makeGroup, makeTasks, toBatch, toGroup } from './store-bed-batches.ts';
export { defineStoreSuite } from './store-suite.ts';
export { makePythonImage, makeTinyImage } from './tiny-image.ts';
export { makeTinyModel } from './tiny-model.ts';
