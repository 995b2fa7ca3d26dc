// The part of the protocol that needs no schemas: what the threads of the store use. Loading every schema takes longer than starting a
// thread.

export { type Defined, definedOf } from './defined.ts';
export { type Blame, blame, blames, type ErrorCode, errorCodes, errorTable, messageOf, RolloutError, toRolloutError } from './error.ts';
export { idPattern } from './id-pattern.ts';
export { chooseNearest, didYouMean } from './nearest.ts';
export { canMove, isTerminal, moves, type RolloutState, rolloutStates, type StageName, stages } from './rollout-state.ts';
export { tryJson } from './try-json.ts';
