// What other packages may use of the engines package, name by name.

export type { Backend, BackendProbe, BackendRecord, GenerateRequest, Generation, NewBackend, ServerFacts } from './backend.ts';
export { healthPathOf, readHealth } from './calls/server-health.ts';
export { toSessionAddress } from './calls/session-address.ts';
export type { HttpBackendOptions } from './http-backend.ts';
export { readBounded } from './http-post.ts';
export { explainLogprobs, findUnseen, logprobsOf } from './logprobs.ts';
export { openBackend, tokenRoutes } from './open-backend.ts';
export type { VersionSpan } from './reply/weight-versions.ts';
export { sliceMask } from './sampling-mask.ts';
export { describeRefusal, isWithoutRoute, openVllmBackend } from './vllm.ts';
export { completionsRoute } from './vllm-wire.ts';
export { findStopToken } from './wire.ts';
