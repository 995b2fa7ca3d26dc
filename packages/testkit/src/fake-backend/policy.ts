// Policies for the fake backend, which stand in for a model. Each is a pure function of the prompt's ids, so that a retry, another
// backend or a restart gives the same answer.

/** Text is decoded only on demand. */
export interface PolicyInput {
  readonly promptIds: Int32Array;
  readonly maxTokens: number;
  /** Assistant turns that are already in the prompt. */
  readonly turn: number;
  readonly sessionId: string | undefined;
  /** The whole prompt. */
  decode(): string;
  /** The prompt up to the first assistant turn. */
  opening(): string;
  /** The last `n` tokens of the prompt. */
  tail(n: number): string;
  encode(text: string): Int32Array;
}

/** The backend adds the end of turn. */
export type PolicyAnswer = { readonly text: string } | { readonly tokenIds: Int32Array };
export type Policy = (input: PolicyInput) => PolicyAnswer;

export interface Script {
  /** Tested against the opening; the first script that matches is used. */
  readonly match: RegExp;
  /** One entry for each turn; the last is repeated. */
  readonly turns: readonly string[];
}

export function scriptedPolicy(scripts: readonly Script[]): Policy {
  return (input) => {
    const opening = input.opening();
    const script = scripts.find(({ match }) => match.test(opening));
    if (!script) return { text: 'No script matches this opening.' };
    return { text: script.turns[Math.min(input.turn, script.turns.length - 1)] ?? '' };
  };
}

/** Repeats the last message. */
export const echoPolicy: Policy = (input) => {
  const message = input.tail(512).split('<|im_start|>').at(-2) ?? '';
  return { text: message.replace(/^[a-z]+\n/, '').replace(/<\|im_end\|>\n?$/, '') };
};

/** Calls `bash` with `true` in every turn but the last, then `finish`. Each turn has exactly `tokensPerTurn` tokens, its end included. Never decodes. */
export function fixedPolicy({ turns, tokensPerTurn, answer = 'done' }: { turns: number; tokensPerTurn: number; answer?: string }): Policy {
  const cache = new Map<string, Int32Array>();
  const say = (call: string, input: PolicyInput): PolicyAnswer => {
    const known = cache.get(call) ?? padTo(tokensPerTurn - 1, input.encode(call), input.encode(' on'));
    cache.set(call, known);
    return { tokenIds: known };
  };
  return (input) => say(input.turn + 1 < turns ? renderCall('bash', { command: 'true' }) : renderCall('finish', { answer }), input);
}

/** A tool call in the Hermes format. */
export function renderCall(name: string, args: Record<string, unknown>): string {
  return `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
}

function padTo(length: number, tokenIds: Int32Array, filler: Int32Array): Int32Array {
  if (tokenIds.length > length) throw new Error(`a call takes ${tokenIds.length} tokens, more than the ${length} of a turn`);
  const padding = new Int32Array(length - tokenIds.length).fill(filler[0] ?? 0);
  return Int32Array.from([...padding, ...tokenIds]);
}
