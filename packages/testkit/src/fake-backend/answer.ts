// The fake backend's answer to a request: a whole turn, the first tokens of one, or the rest of one that was cut.

import type { FakeAnswer, FakeRequest } from './engines/wire.ts';
import type { Policy, PolicyInput } from './policy.ts';
import { type FakeTokens, findAssistantStarts } from './tokens.ts';

interface Speaker {
  readonly policy: Policy;
  readonly tokens: FakeTokens;
  /** For a request without a limit. */
  readonly defaultMaxTokens: number;
}

export function makeAnswer({ promptIds, maxTokens: asked, headers, route, sampling }: FakeRequest, speaker: Speaker): FakeAnswer {
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
  const stop = findStop(whole.subarray(0, maxTokens), sampling, decode);
  // llama.cpp leaves out what belongs to a stop string, so our adapter never sends one.
  if (stop && route !== 'llamacpp') return { tokenIds: whole.subarray(0, stop.length), finishReason: 'stop', stoppedBy: stop.by };
  const tokenIds = whole.subarray(0, maxTokens);
  const finishReason = whole.length > maxTokens ? 'length' : 'stop';
  return { tokenIds, finishReason };
}

/** The first token that is a stop token, except the end of the turn, or with which the text has a stop string. */
function findStop(
  tokenIds: Int32Array,
  { stop, stop_token_ids: ids }: FakeRequest['sampling'],
  decode: FakeTokens['decode'],
): { readonly length: number; readonly by: string | number } | undefined {
  const strings: readonly string[] = Array.isArray(stop) ? stop : [];
  const stops: readonly number[] = Array.isArray(ids) ? ids : [];
  for (let length = 1; length < tokenIds.length; length++) {
    const last = tokenIds[length - 1] ?? 0;
    if (stops.includes(last)) return { length, by: last };
    const by = strings.length > 0 ? strings.find((one) => decode(tokenIds.subarray(0, length)).includes(one)) : undefined;
    if (by !== undefined) return { length, by };
  }
  return undefined;
}

/** A prompt that ends inside the turn is continued from there. */
function countBegun(turn: Int32Array, begun: Int32Array): number {
  return begun.length < turn.length && begun.every((id, i) => turn[i] === id) ? begun.length : 0;
}
