// A model's tokenizer and chat template as one thing: messages in, token ids out. The opening is tokenised once; after that,
// only new messages are, and their ids go right behind the end of the turn before.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Message, ToolSpec } from '@millrace/protocol';
import { type ChatTemplate, openChatTemplate } from './chat-template.ts';
import type { ModelConfig } from './model-config.ts';
import { openTokenizer, runSteps, type TextPart, type Tokenizer } from './tokenizer.ts';
import type { ParsedTurn, ToolCallParser } from './tool-calls.ts';
import { chooseToolParser } from './tool-parsers.ts';

export interface RenderedMessages {
  readonly tokenIds: Int32Array;
  readonly text: string;
  readonly messages: readonly Message[];
}

export interface Conversation {
  readonly tokenizer: Tokenizer;
  /** What ends a turn; inserted, untrained, where the policy was cut off before it. */
  readonly endOfTurn: { readonly id: number; readonly tokenIds: Int32Array; readonly text: string };
  /** To be sent with every request, so that a turn ends where the template ends it. */
  readonly stopTokenIds: readonly number[];
  /** The whole conversation so far, up to the place where the policy goes on. */
  openingIds(messages: readonly Message[], tools: readonly ToolSpec[]): RenderedMessages;
  /** What follows an end of turn: the new messages and the next generation prompt. */
  deltaIds(newMessages: readonly Message[]): RenderedMessages;
  /** The same two in steps of about a millisecond, for whoever must let others have their turn. */
  openingSteps(messages: readonly Message[], tools: readonly ToolSpec[]): Generator<void, RenderedMessages>;
  deltaSteps(newMessages: readonly Message[]): Generator<void, RenderedMessages>;
  /** The text of a sampled turn, without the token that ended it. */
  decodeTurn(tokenIds: Int32Array): string;
  /** What that text says, does and asks for. A thought that the generation prompt has opened counts as opened. */
  parseTurn(text: string, tools?: readonly ToolSpec[]): ParsedTurn;
}

export type ConversationOptions = Partial<Omit<ModelConfig, 'tokenizer'>>;

/** Reads tokenizer.json, tokenizer_config.json and, where there is one, chat_template.jinja. Throws an Error that says what cannot be used. */
export async function openConversation(folder: string, options: ConversationOptions = {}): Promise<Conversation> {
  const [tokenizer, config, file] = await Promise.all([
    openTokenizer(folder),
    readFile(join(folder, 'tokenizer_config.json'), 'utf8').then((text): Record<string, unknown> => JSON.parse(text)),
    readFile(join(folder, 'chat_template.jinja'), 'utf8').catch(() => undefined), // older folders have it in their config
  ]);
  const template = openChatTemplate(file === undefined ? config : { ...config, chat_template: file }, {
    name: `the chat template of ${folder}`,
    controlTokens: tokenizer.controlTokens,
    kwargs: options.chatTemplateKwargs ?? {},
  });
  return joinConversation(tokenizer, template, chooseToolParser(options.toolParser ?? 'hermes', template.source));
}

function joinConversation(tokenizer: Tokenizer, template: ChatTemplate, parser: ToolCallParser): Conversation {
  const [id, ...others] = tokenizer.encode(template.endOfTurn);
  if (id === undefined || others.length > 0) throw new Error(`${template.endOfTurn} ends a turn, but is not one token`);
  proveParts(tokenizer, template);
  const stopTokenIds = [...new Set([id, ...tokenizer.eosIds])];
  const openingSteps = (messages: readonly Message[], tools: readonly ToolSpec[]) =>
    encodeMessages(tokenizer, messages, () => template.renderOpening(messages, tools));
  const deltaSteps = (newMessages: readonly Message[]) => encodeMessages(tokenizer, newMessages, () => template.renderDelta(newMessages));
  const thoughtOpen = findThoughtOpen(template);
  return {
    tokenizer,
    endOfTurn: { id, tokenIds: Int32Array.of(id), text: template.endOfTurn },
    stopTokenIds,
    openingSteps,
    deltaSteps,
    openingIds: (messages, tools) => runSteps(openingSteps(messages, tools)),
    deltaIds: (newMessages) => runSteps(deltaSteps(newMessages)),
    decodeTurn(tokenIds) {
      const ended = stopTokenIds.includes(tokenIds.at(-1) ?? -1);
      return tokenizer.decode(ended ? tokenIds.subarray(0, -1) : tokenIds);
    },
    parseTurn: (text, tools) => parser.parse(thoughtOpen + text, tools),
  };
}

function* encodeMessages(
  tokenizer: Tokenizer,
  messages: readonly Message[],
  render: () => readonly TextPart[],
): Generator<void, RenderedMessages> {
  const parts = render();
  return { tokenIds: yield* tokenizer.encodeSteps(parts), text: joinText(parts), messages };
}

/** Some templates end the generation prompt inside of a thought, which the model then only closes. */
function findThoughtOpen(template: ChatTemplate): string {
  const prompt = template.renderDelta([{ role: template.answerRole, content: 'x' }]).at(-1)?.text ?? '';
  return /(<think>|\[THINK\])\s*$/.exec(prompt)?.[1] ?? '';
}

/** Tokenising in parts must give what the library gives for the whole; a vocabulary that marks the start of a text does not. */
function proveParts(tokenizer: Tokenizer, template: ChatTemplate): void {
  const opening = template.renderOpening([{ role: 'user', content: 'What is 6 × 7?' }], []);
  const delta = template.renderDelta([{ role: template.answerRole, content: 'total 0\n' }]);
  for (const parts of [opening, delta]) {
    const [inParts, whole] = [tokenizer.encodeParts(parts), tokenizer.encode(joinText(parts))];
    if (inParts.join() !== whole.join())
      throw new Error(`this tokenizer splits ${JSON.stringify(joinText(parts))} by what stands before it`);
  }
}

function joinText(parts: readonly TextPart[]): string {
  return parts.map(({ text }) => text).join('');
}
