// The policy's words: bytes, so that every text has tokens, a few whole words, and the marks of turns. A space belongs to the
// word before it, so that a word is always the same token.

export const places = ['attic', 'barn', 'cellar', 'hall'] as const;
export const animals = ['crow', 'fox', 'mouse', 'owl'] as const;
export const callOpen = ['```bash\n', './look '] as const;
export const callClose = '\n```';
export const question = (place: string) => `Who is in the ${place}?`;

export const marks = { user: '<|user|>', assistant: '<|assistant|>', tool: '<|tool|>', system: '<|system|>', end: '<|end|>' } as const;

const words: readonly string[] = [...new Set(['Who ', 'is ', 'in ', 'the ', '?', ...places, ...animals, ...callOpen, callClose])];
const byteCount = 256;
const controls: readonly string[] = Object.values(marks);

/** The number of tokens; all ids are below it. */
export const vocabularySize = byteCount + words.length + controls.length;

/** The id of a word or mark. */
export function idOf(text: string): number {
  const index = [...words, ...controls].indexOf(text);
  if (index < 0) throw new Error(`${JSON.stringify(text)} is not one token`);
  return byteCount + index;
}

/** The word or mark of an id; empty for a byte. */
export function textOf(id: number): string {
  return [...words, ...controls][id - byteCount] ?? '';
}

/** What a model's folder holds: tokenizer.json and tokenizer_config.json. */
export function makeTokenizerFiles(): Readonly<Record<'tokenizer.json' | 'tokenizer_config.json', string>> {
  const letters = Array.from({ length: byteCount }, (_, byte) => byteLetters[byte] ?? '');
  const spelled = words.map((word) => Array.from(Buffer.from(word), (byte) => byteLetters[byte]).join(''));
  const vocab = Object.fromEntries([...letters, ...spelled].map((token, id) => [token, id]));
  const added_tokens = controls.map((content) => ({ id: idOf(content), content, special: true, normalized: false }));
  const pattern = { Regex: '```bash\\n|\\n```|[A-Za-z]+ ?|.|\\n' };
  const pretokenizers = [
    { type: 'Split', pattern, behavior: 'Isolated', invert: false },
    { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
  ];
  const tokenizer = {
    version: '1.0',
    added_tokens,
    normalizer: null,
    pre_tokenizer: { type: 'Sequence', pretokenizers },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
    // A piece that is a known word is one token; anything else is split into bytes.
    model: { type: 'BPE', vocab, merges: [], ignore_merges: true, byte_fallback: false },
  };
  const config = { tokenizer_class: 'PreTrainedTokenizerFast', eos_token: marks.end, chat_template: chatTemplate };
  return { 'tokenizer.json': JSON.stringify(tokenizer), 'tokenizer_config.json': JSON.stringify(config) };
}

const chatTemplate = [
  "{%- for message in messages -%}{{- '<|' + message.role + '|>' + message.content + '<|end|>' -}}{%- endfor -%}",
  "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}",
].join('');

/** The character that byte-level vocabularies use for each byte. */
const byteLetters: readonly string[] = makeByteLetters();

function makeByteLetters(): string[] {
  let free = 0x100;
  return Array.from({ length: byteCount }, (_, byte) => {
    const isSeen = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    return String.fromCharCode(isSeen ? byte : free++);
  });
}
