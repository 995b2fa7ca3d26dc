// What other packages may use of the worker, name by name.

export { GatewayHost } from './gateway/gateway-host.ts';
export { toSecretDigest } from './gateway/run-gateway.ts';
export { inferenceConfig } from './inference/inference-config.ts';
export { PolicyGate } from './inference/policy-gate.ts';
export { BackendPool } from './inference/pool/pool.ts';
export { probeNewServer } from './inference/pool/server-probe.ts';
export { sampleTokenizer, type TokenizerSample, tokenizerSample } from './inference/pool/tokenizer-check.ts';
export { Sampler } from './inference/sampler.ts';
export { AttemptRecord, type Prepared } from './pipeline/attempt/attempt-record.ts';
export { ControlResults } from './pipeline/attempt/control-results.ts';
export { evaluateAttempt } from './pipeline/attempt/evaluate.ts';
export { pipelineConfig } from './pipeline/attempt/pipeline-config.ts';
export { collectAttempt } from './pipeline/attempt/run-settled.ts';
export { Stage } from './pipeline/attempt/stage.ts';
export type { StageDeps } from './pipeline/attempt/stage-deps.ts';
export { initAttempt } from './pipeline/attempt/stages.ts';
export { toSavedTurns } from './pipeline/continue/continuation.ts';
export { Worker } from './pipeline/worker.ts';
