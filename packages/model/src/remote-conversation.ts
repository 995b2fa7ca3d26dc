// A conversation that uses a backend's tokenizer over HTTP. It is tested at startup, and refused with a reason if it is not exact and safe.

import { Pace } from '@millrace/base/pace';
import { definedOf, messageOf } from '@millrace/protocol';
import { z } from 'zod';
import { type Conversation, type ConversationOptions, exampleParts, joinConversation, joinText } from './conversation.ts';
import { proveProfile } from './model-profile.ts';
import { openChatTemplate } from './template/chat-template.ts';
import { digestTemplate, readTemplate } from './template/template-files.ts';
import { RemoteTokenizer } from './tokenizer/remote-tokenizer.ts';
import { openTokenSource, type TokenSource } from './tokenizer/token-source.ts';

interface RemoteConversationOptions extends ConversationOptions {
  readonly apiKey?: string | undefined;
}

const tokenText = z.union([z.string(), z.object({ content: z.string() }).transform(({ content }) => content)]);
const knownTokens = z.looseObject({
  /** As in tokenizer_config.json; vLLM reports only the text of each token. */
  added_tokens_decoder: z.record(z.string(), tokenText).default({}),
  bos_token: tokenText.nullish(),
  eos_token: tokenText.nullish(),
});

/** Takes the chat template from `chatTemplate`, a .jinja file or a tokenizer_config.json; otherwise from the server, if it serves one. */
export async function openRemoteConversation(url: string, options: RemoteConversationOptions = {}): Promise<Conversation> {
  try {
    return await open(url, options);
  } catch (error) {
    throw new Error(`no usable tokenizer at ${url}: ${messageOf(error)}`, { cause: error });
  }
}

async function open(url: string, options: RemoteConversationOptions) {
  const { apiKey, chatTemplate, chatTemplateKwargs = {}, toolParser = 'auto' } = options;
  const source = await openTokenSource(url, definedOf({ apiKey }));
  const config: Record<string, unknown> = { ...source.config, ...(chatTemplate === undefined ? {} : await readTemplate(chatTemplate)) };
  if (config.chat_template === undefined)
    throw new Error('it serves no chat template; set model.chatTemplate, or start vLLM with --enable-tokenizer-info-endpoint');
  const { added_tokens_decoder, bos_token, eos_token } = knownTokens.parse(config);
  const candidates = [...Object.values(added_tokens_decoder), bos_token ?? [], eos_token ?? []].flat().filter((text) => text.trim() !== '');
  const texts = [JSON.stringify(config.chat_template)];
  const tokenizer = await RemoteTokenizer.open(source, { candidates, texts, eosToken: eos_token ?? undefined });
  const { controlTokens } = tokenizer;
  const name = `the chat template of ${url}`;
  const template = openChatTemplate(config, { name, controlTokens, kwargs: chatTemplateKwargs });
  const pace = new Pace();
  await proveParts(source, async (parts) => await pace.run(tokenizer.encodeSteps(parts)), exampleParts(template));
  const profile = proveProfile(template, toolParser, name);
  const digests = { template: digestTemplate(template, chatTemplateKwargs) };
  return await pace.run(joinConversation(tokenizer, template, { ...options, profile, digests }));
}

type ExampleParts = ReturnType<typeof exampleParts>[number];

/** Tokenising in parts must give the ids that the server gives for the whole text. */
async function proveParts(
  source: TokenSource,
  encode: (parts: ExampleParts) => Promise<Int32Array>,
  examples: readonly ExampleParts[],
): Promise<void> {
  for (const parts of examples) {
    const [inParts, whole] = [await encode(parts), await source.tokenize(joinText(parts))];
    if (inParts.join() !== whole.join()) throw new Error(`it splits ${JSON.stringify(joinText(parts))} depending on the text before it`);
  }
}
