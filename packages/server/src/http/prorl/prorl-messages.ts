// A trajectory as ProRL Agent's messages. Joined, their token ids are exactly what the model saw and sampled, and only the ids of assistant
// messages were sampled: its client trains on them without looking at anything else.

import type { Message, ProrlMessage, Segment, Trajectory } from '@millrace/protocol';

/**
 * The last branch, up to its last sampled turn; empty if nothing was sampled. One list can hold only one sequence, so the turns of
 * earlier branches are in it as text of its prompt.
 */
export function toMessages({ segments }: Pick<Trajectory, 'segments'>): ProrlMessage[] {
  const builder = new MessageBuilder();
  const start = segments.findLastIndex(({ kind }) => kind === 'prompt');
  for (const segment of segments.slice(Math.max(0, start))) builder.add(segment);
  return builder.end();
}

class MessageBuilder {
  readonly #messages: ProrlMessage[] = [];
  readonly #seen: number[] = [];
  /** Ids that no message carries yet: the end of a turn that we inserted. */
  #owed: number[] = [];
  #isCut = false;

  add(segment: Segment): void {
    const ids = Array.from(segment.tokenIds);
    if (segment.kind === 'sampled') this.#addSampled(segment, ids);
    else this.#addGiven(segment, ids);
    this.#isCut = segment.kind === 'sampled' && segment.finish_reason === 'abort';
    for (const id of ids) this.#seen.push(id);
  }

  end(): ProrlMessage[] {
    return this.#messages.slice(0, this.#messages.findLastIndex((message) => message.input_ids !== null) + 1);
  }

  #addSampled({ messages, text, logprobs }: Segment, ids: number[]): void {
    const said = messages.find(({ role }) => role === 'assistant') ?? { role: 'assistant', content: text };
    const last = this.#messages.at(-1);
    const sampled = { ...toMessage(said), token_ids: ids, input_ids: this.#seen.slice(), logprobs: Array.from(logprobs) };
    if (!this.#isCut || !last) {
      if (this.#owed.length > 0) this.#pushGiven({ role: 'system', content: '' }, this.#takeOwed());
      this.#messages.push(sampled);
      return;
    }
    // A turn that was cut and continued is one message.
    this.#messages[this.#messages.length - 1] = {
      ...sampled,
      token_ids: [...last.token_ids, ...ids],
      input_ids: last.input_ids,
      logprobs: [...(last.logprobs ?? []), ...sampled.logprobs],
    };
  }

  /** The ids of a segment belong to the last of its messages that the client does not train on. */
  #addGiven({ messages }: Segment, ids: readonly number[]): void {
    for (const id of ids) this.#owed.push(id);
    const carrier = messages.findLastIndex(({ role }) => role !== 'assistant');
    for (const [at, message] of messages.entries()) this.#pushGiven(message, at === carrier ? this.#takeOwed() : []);
  }

  #pushGiven(message: Message, token_ids: number[]): void {
    this.#messages.push({ ...toMessage(message), token_ids, input_ids: null, logprobs: null });
  }

  #takeOwed(): number[] {
    const owed = this.#owed;
    this.#owed = [];
    return owed;
  }
}

function toMessage({ role, content, reasoning, tool_calls: calls }: Message): Pick<ProrlMessage, 'role' | 'content' | 'tool_calls'> {
  const text = reasoning === undefined ? content : `<think>\n${reasoning}\n</think>\n\n${content}`;
  if (calls === undefined) return { role, content: text };
  return { role, content: text, tool_calls: calls.map(({ name, arguments: given }) => ({ name, arguments: JSON.stringify(given) })) };
}
