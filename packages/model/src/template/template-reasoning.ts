// How a chat template takes the reasoning of earlier turns: as a field of the message, or in think tags at the start of its content; and
// whether it writes or drops it. Both are found by rendering.

import type { Message } from '@millrace/protocol';

/** A message for the template. Each family of templates reads reasoning from a different field. */
export type TemplateMessage = Message & { readonly reasoning_content?: string; readonly thinking?: string };

type RenderPlain = (messages: readonly TemplateMessage[]) => string;

interface TemplateReasoning {
  /** Whether the template reads a field, or has think tags in its source. */
  readonly isKnown: boolean;
  /** The message with its reasoning where the template looks for it. */
  write(message: Message): TemplateMessage;
  /** Whether the reasoning of the turn `last`, and of earlier turns, is still written when these messages follow it, and its calls with it. */
  isKept(last: Message, newMessages: readonly Message[], hasEarlier: boolean): boolean;
}

// Words that no template writes on its own.
const thought = 'thought8e003';
const earlier = 'earlier8e005';
const called = 'called8e004';
const question: Message = { role: 'user', content: 'question' };

export function openReasoning(source: string, render: RenderPlain): TemplateReasoning {
  const call = { id: 'call00000', name: 'bash', arguments: { command: called } };
  const plain: Message = { role: 'assistant', content: 'answer', reasoning: thought };
  const turns = [plain, { ...plain, tool_calls: [call] }, { ...plain, content: '', tool_calls: [call] }];
  const readsField = turns.some((turn) => writes(render, [question, toFields(turn)], thought));
  const [open, close] = source.includes('[THINK]') ? ['[THINK]', '[/THINK]'] : ['<think>', '</think>'];
  const write = (message: Message): TemplateMessage => {
    const { reasoning, ...rest } = message;
    if (reasoning === undefined) return message;
    return readsField ? toFields(message) : { ...rest, content: `${open}\n${reasoning}\n${close}\n\n${rest.content}` };
  };
  const shapes = new Map<string, boolean>();
  return {
    isKnown: readsField || source.includes(close),
    write,
    isKept(last, newMessages, hasEarlier) {
      const hasCalls = last.tool_calls !== undefined;
      const shape = [hasCalls, hasEarlier, ...newMessages.map(({ role }) => role)].join();
      const isKept = shapes.get(shape) ?? isKeptAfter({ render, write }, { hasCalls, hasEarlier }, newMessages);
      if (shapes.size < maxShapes) shapes.set(shape, isKept);
      return isKept;
    },
  };
}

const maxShapes = 256;

function toFields(message: Message): TemplateMessage {
  const { reasoning = '' } = message;
  return { ...message, reasoning_content: reasoning, thinking: reasoning };
}

function isKeptAfter(
  { render, write }: Pick<TemplateReasoning, 'write'> & { readonly render: RenderPlain },
  { hasCalls, hasEarlier }: { hasCalls: boolean; hasEarlier: boolean },
  newMessages: readonly Message[],
): boolean {
  const call = { id: 'call00000', name: 'bash', arguments: { command: called } };
  const turn: Message = { role: 'assistant', content: 'answer', reasoning: thought, ...(hasCalls ? { tool_calls: [call] } : {}) };
  const next = newMessages.map((message) => ({ ...message, content: 'text' }));
  const past = [question, write(turn), ...next];
  if (hasCalls && writes(render, past, called) !== true) return true;
  if (writes(render, past, thought) === false) return false;
  return (
    !hasEarlier || (writes(render, [question, write({ ...turn, reasoning: earlier }), ...next, write(turn), ...next], earlier) ?? true)
  );
}

/** Undefined if the template refuses the messages. */
function writes(render: RenderPlain, messages: readonly TemplateMessage[], text: string): boolean | undefined {
  try {
    return render(messages).includes(text);
  } catch {
    return undefined; // a template may refuse any shape; its history then stays as it is
  }
}
