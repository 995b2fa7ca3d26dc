// The public names of the gateway package.

export {
  type BranchReason,
  branchReasons,
  History,
  type HistoryMatch,
  type HistoryPrompt,
  type HistoryReply,
  type HistoryRequest,
  type SplicedTurn,
} from './history/history.ts';
export { type MessageKey, toKey } from './history/message-key.ts';
export {
  GatewayError,
  type GatewayErrorKind,
  joinReply,
  type ReplyEvent,
  type ReplyFinish,
  type ReplyHead,
  type ReplyUsage,
  type WholeReply,
  type Wire,
  type WireName,
  type WireRequest,
  type WireStream,
  wireNames,
} from './wire-request.ts';
export { type FoundWire, findWire } from './wires/find-wire.ts';
