// A model folder for a template that comes without its vocabulary: a small tokenizer with the control tokens of the template, which are
// recognised by their spelling.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { JinjaTemplate } from '../../../packages/model/src/jinja/jinja.ts';
import { tinyTokenizers } from '../../../packages/model/test/tokenizer/tiny-tokenizers.ts';

const tokenSpelling =
  /<\|[^|<>\n]{1,40}\|?>|<[^|<>\n]{1,40}\|>|<｜[^｜\n]{1,40}｜>|\[\/?[A-Z_]{3,}\]|<\/?(?:seed:)?[a-z]+_?(?:of_)?[a-z_]*>|\[e~\[|\]~b\]|\]~!b\[|<SPECIAL_\d+>|<sep>/g;
/** The eos_token of models whose templates write other control tokens before it. */
export const eosTokens = ['<|end_of_msg|>', '<|END_OF_TURN_TOKEN|>', '<|assistant_end|>', '<|im_end|>', '<|eot_id|>'];

/** Like those of chat models, its tokenizer keeps newlines apart from what follows them. */
export async function writeStandIn(folder: string, name: string, source: string): Promise<void> {
  const tokenizer: object = tinyTokenizers['possessive quantifiers, removed and inverted, after NFC'] ?? {};
  const { vocab } = z.looseObject({ model: z.looseObject({ vocab: z.record(z.string(), z.int()) }) }).parse(tokenizer).model;
  const config = toTokenizerConfig(name, source);
  const tokens = [...new Set([...guessTokens(source), config.bos_token, config.eos_token])];
  const first = Math.max(...Object.values(vocab)) + 1;
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  const added_tokens = tokens.map((content, index) => ({ id: first + index, content, ...flags }));
  const eos = added_tokens.filter(({ content }) => content === config.eos_token || eosTokens.includes(content));
  await writeFile(join(folder, 'tokenizer.json'), JSON.stringify({ ...tokenizer, added_tokens }));
  await writeFile(join(folder, 'tokenizer_config.json'), JSON.stringify(config));
  await writeFile(join(folder, 'generation_config.json'), JSON.stringify({ eos_token_id: eos.map(({ id }) => id) }));
}

/** Apriel 1.5 writes its eos_token after the token that ends a turn, which is the same one. */
export function toTokenizerConfig(name: string, source: string): Record<'chat_template' | 'bos_token' | 'eos_token', string> {
  return { chat_template: source, bos_token: '<BOS>', eos_token: name.includes('Apriel-1.5') ? '<|end|>' : '<EOS>' };
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
