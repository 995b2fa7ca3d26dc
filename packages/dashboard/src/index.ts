// What other packages may use of the dashboard, name by name: only pure parts, which the server, the command line and the pages share.

export type { BriefSource } from './list/brief.ts';
export { type ExportedData, type ExportedRollout, exportedDataId } from './list/exported.ts';
export { RolloutIndex } from './list/rollout-index.ts';
export { toAtif } from './logic/atif.ts';
export { findDivergence } from './logic/diverge.ts';
export { builtInPatterns, type Finding, loopName, parsePattern, scanTrajectory } from './logic/scan.ts';
