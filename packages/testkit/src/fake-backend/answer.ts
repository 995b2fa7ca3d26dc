// The fake backend's answer to a request: a whole turn, the first tokens of one, or the rest of one that was cut.

import type { FakeAnswer, FakeRequest } from './engines/wire.ts';
import type { Policy, PolicyInput } from './policy.ts';
import { type FakeTokens, findAssistantStarts } from './tokens.ts';

export interface Speaker {
  readonly policy: Policy;
  readonly tokens: FakeTokens;
  /** For a request without a limit. */
  readonly defaultMaxTokens: number;
}

export function makeAnswer({ promptIds, maxTokens: asked, headers }: FakeRequest, speaker: Speaker): FakeAnswer {
  const { policy, tokens, defaultMaxTokens } = speaker;
  const maxTokens = asked ?? defaultMaxTokens;
  const { decode, encode, endOfTurnId } = tokens;
  const starts = findAssistantStarts(promptIds, tokens);
  const input: PolicyInput = {
    promptIds,
    maxTokens,
    turn: Math.max(0, starts.length - 1),
    sessionId: headers['x-session-id']?.toString(),
    decode: () => decode(promptIds),
    opening: () => decode(promptIds.subarray(0, starts[0])),
    tail: (n) => decode(promptIds.subarray(-n)),
    encode,
  };
  const said = policy(input);
  const turn = Int32Array.from([...('text' in said ? encode(said.text) : said.tokenIds), endOfTurnId]);
  const whole = turn.subarray(countBegun(turn, promptIds.subarray(starts.at(-1) ?? promptIds.length)));
  const tokenIds = whole.subarray(0, maxTokens);
  const finishReason = whole.length > maxTokens ? 'length' : 'stop';
  return { tokenIds, finishReason };
}

/** A prompt that ends inside the turn is continued from there. */
function countBegun(turn: Int32Array, begun: Int32Array): number {
  return begun.length < turn.length && begun.every((id, i) => turn[i] === id) ? begun.length : 0;
}
