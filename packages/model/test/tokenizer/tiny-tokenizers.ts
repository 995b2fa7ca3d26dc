// Small tokenizers of every kind that published models have, each a tokenizer.json. What Rust's tokenizers make of the texts is in
// rust-ids.json, which `node world/tokenizers/write-golden.ts` writes.

import { byteLetters, toLetters } from '../../src/tokenizer/model/byte-letters.ts';

const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
const splitAt = (pattern: string, behavior = 'Isolated', invert = false) => ({
  type: 'Split',
  pattern: { Regex: pattern },
  behavior,
  invert,
});
const sequence = (...pretokenizers: object[]) => ({ type: 'Sequence', pretokenizers });
const added = (id: number, content: string, more: object = {}) => ({
  ...{ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true },
  ...more,
});

const words = ['the', ' the', 'ing', ' world', 'Hello', '  ', '\n\n', '123', '日本', ' é', "'s", '...', 'ab', 'abab'];

/** Bytes, and every word with all that it starts with. */
function makeByteModel(): TinyParts['model'] {
  const tokens = [...byteLetters];
  const merges: [string, string][] = [];
  for (const word of words.map((one) => toLetters(Buffer.from(one))))
    for (let end = 2; end <= word.length; end++) {
      if (tokens.includes(word.slice(0, end))) continue;
      tokens.push(word.slice(0, end));
      merges.push([word.slice(0, end - 1), word.slice(end - 1, end)]);
    }
  return { type: 'BPE', vocab: Object.fromEntries(tokens.map((token, id) => [token, id])), merges, unk_token: null };
}

const marked = ['▁the', '▁world', 'Hello', '▁▁', '▁▁▁▁', 'ing', 'é', '日', '▁a', 'ab', '<b>'];
const characters = [...'▁abcdefghijklmnopqrstuvwxyzHW0123456789.,<>/'];
const byteTokens = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);

function makeSentencePieceModel(): TinyParts['model'] {
  const tokens = ['<unk>', '<s>', '</s>', ...byteTokens, ...characters, 'é', '日'];
  const merges: [string, string][] = [];
  for (const word of marked)
    for (let end = 2; end <= word.length; end++) {
      if (tokens.includes(word.slice(0, end))) continue;
      tokens.push(word.slice(0, end));
      merges.push([word.slice(0, end - 1), word.slice(end - 1, end)]);
    }
  const vocab = Object.fromEntries(tokens.map((token, id) => [token, id]));
  return { type: 'BPE', vocab, merges, unk_token: '<unk>', fuse_unk: true, byte_fallback: true };
}

const unigramModel = {
  type: 'Unigram',
  unk_id: 0,
  vocab: [
    ['<unk>', 0],
    ['<s>', 0],
    ['</s>', 0],
    ...characters.map((one, index) => [one, -4 - index / 10]),
    ...marked.map((one, index) => [one, -2 - index / 7]),
  ],
};

const byteDecoder = { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true };
const markDecoder = (more: object[] = []) => ({
  type: 'Sequence',
  decoders: [{ type: 'Replace', pattern: { String: '▁' }, content: ' ' }, { type: 'ByteFallback' }, { type: 'Fuse' }, ...more],
});
const replaceSpaces = { type: 'Replace', pattern: { String: ' ' }, content: '▁' };
const specials = [added(1, '<s>'), added(2, '</s>')];
const byteSpecials = [added(-1, '<|end|>'), added(-2, '<tool_call>', { special: false }), added(-3, '<b>', { special: false })];
const cl100k = String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`;

function byteTokenizer(pre_tokenizer: object, normalizer: object | null = null): object {
  return toFile({ normalizer, pre_tokenizer, decoder: byteDecoder, model: makeByteModel(), added_tokens: byteSpecials });
}

interface TinyParts {
  readonly model: { readonly vocab: object; readonly [name: string]: unknown };
  readonly added_tokens: readonly { readonly id: number }[];
}

/** Added tokens that are not in the vocabulary follow it, as Rust's tokenizers number them. */
function toFile<T extends TinyParts>(parts: T): object {
  const size = Object.keys(parts.model.vocab).length;
  const added_tokens = parts.added_tokens.map((token) => ({ ...token, id: token.id < 0 ? size - 1 - token.id : token.id }));
  return { version: '1.0', truncation: null, padding: null, post_processor: null, ...parts, added_tokens };
}

export const tinyTokenizers: Readonly<Record<string, object>> = {
  'GPT-2': byteTokenizer(byteLevel),
  'digits before GPT-2': byteTokenizer(sequence({ type: 'Digits', individual_digits: true }, byteLevel)),
  'punctuation, bytes, then digits': byteTokenizer(
    sequence(
      { type: 'Punctuation', behavior: 'Contiguous' },
      byteLevel,
      { type: 'Digits', individual_digits: false },
      splitAt('[0-9][0-9][0-9]'),
    ),
  ),
  'possessive quantifiers, removed and inverted, after NFC': byteTokenizer(
    sequence(splitAt(cl100k, 'Removed', true), { ...byteLevel, use_regex: false }),
    { type: 'NFC' },
  ),
  'intersections of classes': byteTokenizer(
    sequence(splitAt(String.raw`\p{Han}+|[\p{Lu}\p{Ll}&&[^\p{Han}a]]+|\p{N}{1,3}|\s+`), { ...byteLevel, use_regex: false }),
  ),
  'empty matches': byteTokenizer(sequence(splitAt(String.raw`\d*`), { ...byteLevel, use_regex: false })),
  'empty matches, merged with the next': byteTokenizer(sequence(splitAt('t?', 'MergedWithNext'), { ...byteLevel, use_regex: false })),
  'a mark before each text': toFile({
    normalizer: { type: 'Sequence', normalizers: [{ type: 'Prepend', prepend: '▁' }, replaceSpaces] },
    pre_tokenizer: null,
    decoder: markDecoder([{ type: 'Strip', content: ' ', start: 1, stop: 0 }]),
    model: makeSentencePieceModel(),
    added_tokens: specials,
  }),
  'ordinary added tokens': toFile({
    normalizer: replaceSpaces,
    pre_tokenizer: { type: 'Split', pattern: { String: ' ' }, behavior: 'MergedWithPrevious', invert: false },
    decoder: markDecoder(),
    model: makeSentencePieceModel(),
    added_tokens: [
      ...specials,
      added(-1, '</b>', { special: false }),
      added(-2, '\n\n', { special: false }),
      added(-3, '<mask>', { special: false }),
    ],
  }),
  Metaspace: toFile({
    normalizer: null,
    pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: false },
    decoder: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: false },
    model: makeSentencePieceModel(),
    added_tokens: specials,
  }),
  Unigram: toFile({
    normalizer: null,
    pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
    decoder: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
    model: unigramModel,
    added_tokens: specials,
  }),
};

export const tinyTexts: readonly string[] = [
  'Hello the world',
  '  the   world  \n\n\n x',
  "it's 12345 and 1,000²³½ ...!?",
  'naïve e\u0301 日本語 🙂 \u0085\u00a0\ufeff end',
  '<s>the</s> <b>bold</b><mask> <|end|><tool_call>',
  'ababababab'.repeat(8),
  'WORLD world\r\n\tTHE日the',
  "I'LL we'Ve 'ſ 'S",
  '',
];
