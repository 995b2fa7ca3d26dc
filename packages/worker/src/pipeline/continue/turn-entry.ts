// One entry of the turn log: what a turn added to the ledger, and where the loop was after it. It names the entry before it, so entries of
// attempts that went different ways are never joined.

import { Ledger } from '@millrace/model';
import { type EngineFacts, fromBinary, provenance, type Segment, sampling, toBinary } from '@millrace/protocol';
import { z } from 'zod';

const tally = z.object({ turns: z.int(), malformedCalls: z.int(), modelMs: z.number(), toolMs: z.number() });

const progress = z.object({
  lastText: z.string(),
  malformedTurns: z.int(),
  compactedAt: z.int(),
  lastCalls: z.array(z.object({ name: z.string(), arguments: z.record(z.string(), z.unknown()) })),
  repeats: z.int(),
  plan: z.object({ sampling, openText: z.string() }),
});

const engineFacts = provenance.omit({ tokenizer_sha256: true, template_sha256: true, date: true });

const turnState = z.object({
  id: z.string(),
  /** The entry before it; absent for the first one. */
  before: z.string().optional(),
  /** The model, its template and the tools: an attempt with others cannot go on. */
  setup: z.string(),
  /** Whose checkpoint it names. */
  rollout: z.string(),
  hasSandbox: z.boolean(),
  /** What the sandbox was after the turn. Absent if it was not saved. */
  checkpoint: z.string().optional(),
  /** Forks may begin after it: its checkpoint is on the disk, and stays. */
  isKept: z.boolean().optional(),
  /** The segments of earlier entries that are still as they were. */
  keptSegments: z.int().min(0),
  /** Engines that no earlier entry has. */
  engines: z.array(engineFacts),
  isContinued: z.boolean(),
  progress,
  tally,
  /** What the agent was charged, with all earlier attempts that this one goes on from. */
  runMs: z.number(),
  cacheWaitMs: z.number(),
  dateMs: z.number(),
  /** How often the rollout continued. */
  times: z.int().min(0),
});

export type TurnState = z.infer<typeof turnState>;

export interface TurnEntry {
  readonly state: TurnState;
  /** Those after `keptSegments`. */
  readonly segments: readonly Segment[];
}

export function packEntry({ state, segments }: TurnEntry): Buffer {
  const head = Buffer.from(JSON.stringify(state));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(head.length);
  return Buffer.concat([length, head, toBinary({ rolloutId: '', attempt: 0, model: '', tools: [], segments })]);
}

/** Throws if it is not what was packed. */
export function unpackEntry(bytes: Uint8Array): TurnEntry {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = 4 + buffer.readUInt32LE(0);
  const state = turnState.parse(JSON.parse(buffer.toString('utf8', 4, end)));
  return { state, segments: fromBinary(buffer.subarray(end)).segments };
}

/**
 * The ledger after the last of these entries, which follow each other from the first one on. A fork shares the first ones with another rollout,
 * which trains them: here, their tokens are what the fork begins with.
 */
export function joinEntries(entries: readonly TurnEntry[], shared = 0): Ledger {
  const segments: Segment[] = [];
  const engines: EngineFacts[] = [];
  for (const [index, { state, segments: more }] of entries.entries()) {
    segments.splice(state.keptSegments, Number.POSITIVE_INFINITY, ...more);
    engines.push(...state.engines);
    if (index + 1 !== shared) continue;
    segments.splice(0, Number.POSITIVE_INFINITY, ...toShared(segments));
    engines.length = 0;
  }
  return Ledger.from({ segments, engines, isContinued: entries.at(-1)?.state.isContinued ?? false });
}

/** The current branch as a context that no policy sampled here. */
function toShared(segments: readonly Segment[]): Segment[] {
  const branch = segments.at(-1)?.branch;
  return segments
    .filter((one) => one.branch === branch)
    .map(({ kind, turn, text, messages, tokenIds }) => ({
      ...{ kind: kind === 'prompt' ? kind : 'observation', turn, text, messages, tokenIds },
      logprobs: new Float32Array(0),
    }));
}
