// A model's tokenizer and chat template together: messages in, token ids out. The opening is tokenised once; after that, only new
// messages are tokenised, and their ids follow the end of the previous turn.

import type { Steps } from '@millrace/base/pace';
import { findParts } from '@millrace/base/parts';
import { ThreadPool } from '@millrace/base/threads/thread-pool';
import { type Message, messageOf, type ToolCall, type ToolSpec } from '@millrace/protocol';
import type { ModelConfig } from './model-config.ts';
import { type ModelProfile, proveProfile } from './model-profile.ts';
import { readTurn } from './read-turn.ts';
import { type ChatTemplate, openChatTemplate } from './template/chat-template.ts';
import { withoutControlTokens } from './template/plain-tools.ts';
import { describeNoTemplate, digestTemplate, readOwnTemplate, readTemplate, toDigest } from './template/template-files.ts';
import { exampleTools, type Past } from './template/template-pasts.ts';
import type { TextPart } from './tokenizer/added-tokens.ts';
import { type EncodeOptions, openTokenizer, type PartTokenizer, runSteps, type Tokenizer } from './tokenizer/tokenizer.ts';
import { readTokenizerSource } from './tokenizer/tokenizer-files.ts';
import { taughtFormats, teachTools } from './tool-calls/teach-tools.ts';
import { type ParsedTurn, toCallId } from './tool-calls/tool-calls.ts';

export interface RenderedMessages {
  readonly tokenIds: Int32Array;
  readonly text: string;
  readonly messages: readonly Message[];
}

export interface Conversation {
  readonly tokenizer: PartTokenizer;
  /** The end of a turn. */
  readonly endOfTurn: EndOfTurn;
  /** The model's tool-call and reasoning format, and how it was proven. */
  readonly profile: ModelProfile;
  /** The SHA-256 of tokenizer.json or tekken.json, absent if the tokenizer is a backend's; and of the chat template with its variables. */
  readonly digests: ModelDigests;
  /** What operators should know about the model. */
  readonly warnings: readonly string[];
  /** Sent with every request, so that a turn ends where the template ends it. */
  readonly stopTokenIds: readonly number[];
  /** The whole conversation so far, up to where the policy continues. */
  openingSteps(messages: readonly Message[], tools: readonly ToolSpec[]): Steps<RenderedMessages>;
  /** What follows the end of this past's last turn: the new messages and the next generation prompt. */
  deltaSteps(newMessages: readonly Message[], past: Past): Steps<RenderedMessages>;
  /** Whether the template leaves the past as it is when these messages follow. If not, it must be rendered again, with them, as an opening. */
  isAppended(newMessages: readonly Message[], past: Past): boolean;
  /** The text of a sampled turn, without its end token. */
  decodeSteps(tokenIds: Int32Array): Steps<string>;
  /** The content, reasoning and tool calls of that text. Reasoning may have been opened by the generation prompt. */
  readTurn(text: string, tools: readonly ToolSpec[], options?: ReadTurnOptions): Promise<ParsedTurn>;
  /** Whether the reasoning of earlier turns stays in the context when these messages follow the turn `last`. */
  keepsReasoning(last: Message, newMessages: readonly Message[], hasEarlier?: boolean): boolean;
  /** The same conversation, whose chat template writes this time. */
  at(nowMs: number): Conversation;
}

interface ReadTurnOptions {
  readonly signal?: AbortSignal | undefined;
  /** Whether it continues a turn, so that it does not follow a generation prompt. */
  readonly isContinued?: boolean;
}

interface EndOfTurn {
  /** The token that usually ends a turn; -1 if turns have none of their own. */
  readonly id: number;
  /** Inserted, masked from training, when the policy was cut off before the end. Empty if turns have none of their own. */
  readonly tokenIds: Int32Array;
  readonly text: string;
  /** Every token after which nothing is inserted. */
  readonly ids: readonly number[];
  /** Whether the token that ends a turn is the first one of the next message, and is then not written again. */
  readonly isShared: boolean;
}

export interface ModelDigests {
  readonly tokenizer?: string;
  readonly template: string;
}

/** A conversation whose tokenizer is in this process, so that every method has a synchronous form. */
export interface LocalConversation extends Conversation {
  readonly tokenizer: Tokenizer;
  openingIds(messages: readonly Message[], tools: readonly ToolSpec[]): RenderedMessages;
  deltaIds(newMessages: readonly Message[], past?: Past): RenderedMessages;
  decodeTurn(tokenIds: Int32Array): string;
}

export type ConversationOptions = Partial<Omit<ModelConfig, 'tokenizer' | 'tokenizerApiKey'>>;

/** Reads the tokenizer of a folder and its chat template. Throws an Error that says what is missing or cannot be used, and what to do. */
export async function openConversation(folder: string, options: ConversationOptions = {}): Promise<LocalConversation> {
  const tokenizer = await openTokenizer(folder);
  const [{ config, vocabulary }, given] = await Promise.all([
    readTokenizerSource(folder),
    options.chatTemplate === undefined ? readOwnTemplate(folder) : readTemplate(options.chatTemplate),
  ]);
  if ({ ...config, ...given }.chat_template === undefined) throw new Error(describeNoTemplate(folder, options.chatTemplate));
  const name = `the chat template of ${folder}`;
  const template = withRemedy(() =>
    openChatTemplate(
      { ...config, ...given },
      {
        name,
        controlTokens: tokenizer.controlTokens,
        eosTokens: tokenizer.eosIds.map((id) => tokenizer.decode([id])),
        kwargs: options.chatTemplateKwargs ?? {},
      },
    ),
  );
  const profile = proveProfile(template, options.toolParser ?? 'auto', name);
  const digests = { tokenizer: toDigest(vocabulary), template: digestTemplate(template, options.chatTemplateKwargs) };
  const conversation = runSteps(joinConversation(tokenizer, template, { ...options, profile, digests }));
  proveParts(tokenizer, template);
  return {
    ...conversation,
    tokenizer,
    openingIds: (messages, tools) => runSteps(conversation.openingSteps(messages, tools)),
    deltaIds: (newMessages, past = { messages: [], tools: [] }) => runSteps(conversation.deltaSteps(newMessages, past)),
    decodeTurn: (tokenIds) => runSteps(conversation.decodeSteps(tokenIds)),
  };
}

function withRemedy(open: () => ChatTemplate): ChatTemplate {
  try {
    return open();
  } catch (error) {
    throw new Error(`${messageOf(error)}. Set model.chatTemplate to another template of this model; docs/models.md lists some`, {
      cause: error,
    });
  }
}

interface ConversationParts {
  readonly profile: ModelProfile;
  readonly digests: ModelDigests;
  readonly reasoning?: ModelConfig['reasoning'] | undefined;
  readonly teachTools?: ModelConfig['teachTools'] | undefined;
}

export function* joinConversation(
  tokenizer: PartTokenizer,
  template: ChatTemplate,
  { profile, digests, reasoning, teachTools: isTeaching = true }: ConversationParts,
): Steps<Conversation> {
  const { parser } = profile;
  const endOfTurn = yield* findEnd(tokenizer, template, parser.ends);
  const stopTokenIds = [...new Set([...endOfTurn.ids, ...tokenizer.eosIds])];
  const { hasSystem } = template;
  const teaches = isTeaching && !template.declaresTools;
  const isNative = profile.toolCalls === 'proven' && !taughtFormats.includes(parser.name);
  if (teaches && !isNative && !taughtFormats.includes(parser.name))
    throw new Error(
      `the chat template declares no tools, and calls in the ${parser.name} format cannot be taught; set model.toolParser to one of ${taughtFormats.join(', ')}`,
    );
  const write = (call: Pick<ToolCall, 'name' | 'arguments'>) =>
    template.writeTurn({ role: 'assistant', content: '', tool_calls: [{ id: toCallId(0), ...call }] }, []);
  const teaching = { format: parser.name, hasSystem, ...(isNative ? { write } : {}) };
  const toWritten = ({ messages, tools }: Past): Past => {
    const harmless = withoutControlTokens(tools, tokenizer.controlTokens);
    return teaches && tools.length > 0 ? { messages: teachTools(messages, harmless, teaching), tools: [] } : { messages, tools: harmless };
  };
  const rendering = (dated: ChatTemplate): Pick<Conversation, 'openingSteps' | 'deltaSteps' | 'isAppended' | 'keepsReasoning'> => ({
    openingSteps: (messages, tools) =>
      encodeMessages(tokenizer, messages, () => {
        const written = toWritten({ messages, tools });
        return dated.renderOpening(written.messages, written.tools);
      }),
    deltaSteps: (newMessages, past) =>
      encodeMessages(tokenizer, newMessages, () => dated.renderDelta(newMessages, toWritten(past)), { isContinued: true }),
    isAppended: (newMessages, past) => dated.isAppended(newMessages, toWritten(past)),
    keepsReasoning: (...turns) => reasoning === 'keep' || dated.keepsReasoning(...turns),
  });
  const threads = new ThreadPool({ entry: findParts().graderThread, name: 'turns', threads: 1, heapMiB: 256 });
  const thoughtOpen = findThoughtOpen(template, parser.reasoning?.open);
  const conversation: Conversation = {
    tokenizer,
    endOfTurn,
    profile,
    digests,
    warnings: [...(teaches ? [describeTeaching(parser.name, hasSystem)] : []), ...describeDifferences(profile)],
    stopTokenIds,
    ...rendering(template),
    *decodeSteps(tokenIds) {
      const ended = stopTokenIds.includes(tokenIds.at(-1) ?? -1);
      return yield* tokenizer.decodeSteps(ended ? tokenIds.subarray(0, -1) : tokenIds);
    },
    async readTurn(text, tools, { signal, isContinued = false } = {}) {
      const turn = await readTurn(threads, parser, { text: isContinued ? text : thoughtOpen + text, tools, signal });
      const calls = turn.calls.map((call, index) => (template.takesId(call.id) ? call : { ...call, id: toCallId(index) }));
      return { ...turn, calls };
    },
    at: (nowMs) => ({ ...conversation, ...rendering(template.at(nowMs)) }),
  };
  return conversation;
}

/** The ids of the template's ends. A format that ends its turns otherwise than its template writes earlier ones names its own. */
function* findEnd(tokenizer: PartTokenizer, { ends }: ChatTemplate, own: readonly string[] | undefined): Steps<EndOfTurn> {
  const ids: number[] = [];
  for (const text of own ?? ends.all) {
    const [id, ...others] = yield* tokenizer.encodeSteps([{ text, trusted: true }]);
    if (id === undefined || others.length > 0) throw new Error(`${text} ends a turn, but it is not a single token`);
    ids.push(id);
  }
  const tokenIds = yield* tokenizer.encodeSteps([{ text: ends.text, trusted: true }]);
  const id = ends.isShared ? -1 : (ids[0] ?? -1);
  return { id, tokenIds, text: ends.text, ids, isShared: ends.isShared };
}

function describeDifferences({ parser, toolCalls, checks }: ModelProfile): string[] {
  if (toolCalls !== 'differs') return [];
  const { what, why } = checks.find(({ outcome }) => outcome === 'differs') ?? {};
  return [`the ${parser.name} format (model.toolParser) is not what the chat template writes: for ${what}, ${why}`];
}

function describeTeaching(format: string, hasSystem: boolean): string {
  const where = hasSystem ? 'system' : 'first user';
  return `the chat template declares no tools: the ${where} message of a task with tools lists them and shows the ${format} format (model.toolParser)`;
}

function* encodeMessages(
  tokenizer: PartTokenizer,
  messages: readonly Message[],
  render: () => readonly TextPart[],
  options: EncodeOptions = {},
): Steps<RenderedMessages> {
  const parts = render();
  return { tokenIds: yield* tokenizer.encodeSteps(parts, options), text: joinText(parts), messages };
}

/** The generation prompt of some templates opens the reasoning, which the model then only closes. */
function findThoughtOpen(template: ChatTemplate, open = '<think>'): string {
  const prompt = template.renderFirstDelta([{ role: template.resultRole, content: 'x' }]).at(-1)?.text ?? '';
  return prompt.trimEnd().endsWith(open) ? open : '';
}

/** Tokenising in parts must give the ids of the whole text; a vocabulary that joins the end of a turn with what follows fails this. */
function proveParts(tokenizer: Tokenizer, template: ChatTemplate): void {
  const [end = ''] = template.ends.all;
  for (const [index, parts] of exampleParts(template).entries()) {
    const isContinued = index > 0 && !template.ends.isShared;
    const text = joinText(parts);
    const inParts = [...(isContinued ? tokenizer.encode(end) : []), ...tokenizer.encodeParts(parts, { isContinued })];
    const whole = tokenizer.encode(isContinued ? end + text : text);
    if (inParts.join() !== whole.join()) throw new Error(`this tokenizer splits ${JSON.stringify(text)} depending on the text before it`);
  }
}

/** A typical opening, and what typically follows a turn. */
export function exampleParts(template: ChatTemplate): readonly (readonly TextPart[])[] {
  const tools = template.needsTools ? exampleTools : [];
  const opening = template.renderOpening([{ role: 'user', content: 'What is 6 × 7?' }], tools);
  return [opening, template.renderFirstDelta([{ role: template.resultRole, content: 'total 0\n' }])];
}

export function joinText(parts: readonly TextPart[]): string {
  return parts.map(({ text }) => text).join('');
}
