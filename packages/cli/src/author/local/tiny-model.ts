// A tokenizer and a chat template of a few KB, made in code, so that `millrace demo` and `millrace try` need no model: a byte-level BPE
// vocabulary with a few hundred merges, and ChatML turns with tools in the hermes form.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Writes tokenizer.json and tokenizer_config.json into `folder`, which is made where it is missing. */
export async function writeTinyModel(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'tokenizer.json'), JSON.stringify(makeTokenizer()));
  await writeFile(join(folder, 'tokenizer_config.json'), JSON.stringify(tokenizerConfig, undefined, 2));
}

const controlTokens = ['<|endoftext|>', '<|im_start|>', '<|im_end|>', '<tool_call>', '</tool_call>', '<tool_response>', '</tool_response>'];

/** Whole words of the demo's conversations; everything else is spelled in shorter tokens. */
const words = `
  the and that this with from you are not for out one all answer answers command bash finish file files name arguments error line
  lines what write read call tool tools type object string properties description function parameters system user assistant
  workspace work task number word words script make exactly print shell python file_text path done so is times would say echo cat
  grep head tail seq sort true world hello primes boxed parse run turn turns which where when each into next first last
`
  .trim()
  .split(/\s+/);

const pieces =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

function makeTokenizer(): unknown {
  const letters = makeByteLetters();
  const space = letters[0x20] ?? '';
  const merges = new Set<string>();
  for (const word of words.flatMap((plain) => [plain, space + plain]))
    for (let end = 1; end < word.length; end++) merges.add(`${word.slice(0, end)} ${word[end]}`);
  const tokens = [...letters, ...[...merges].map((merge) => merge.replace(' ', ''))];
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: controlTokens.map((content, index) => ({
      id: tokens.length + index,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: content.startsWith('<|'),
    })),
    normalizer: null,
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        { type: 'Split', pattern: { Regex: pieces }, behavior: 'Isolated', invert: false },
        { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges: [...merges],
    },
  };
}

/** The letter by which byte-level vocabularies write each byte: the byte itself where it is visible, else the next free one from U+0100. */
function makeByteLetters(): string[] {
  let free = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const isVisible = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    return String.fromCharCode(isVisible ? byte : free++);
  });
}

const chatTemplate = `
{%- if tools %}
  {{- '<|im_start|>system\\n' }}
  {%- if messages[0].role == 'system' %}
    {{- messages[0].content + '\\n\\n' }}
  {%- endif %}
  {{- '# Tools\\n\\nYou may call these functions:\\n<tools>' }}
  {%- for tool in tools %}
    {{- '\\n' }}
    {{- tool | tojson }}
  {%- endfor %}
  {{- '\\n</tools>\\n\\nWrite each call as a JSON object:\\n<tool_call>\\n{"name": ..., "arguments": {...}}\\n</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
  {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
  {%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
  {%- elif message.role == 'assistant' %}
    {{- '<|im_start|>assistant\\n' + message.content }}
    {%- if message.tool_calls %}
      {%- for tool_call in message.tool_calls %}
        {{- '\\n<tool_call>\\n{"name": "' + tool_call.function.name + '", "arguments": ' }}
        {{- tool_call.function.arguments | tojson }}
        {{- '}\\n</tool_call>' }}
      {%- endfor %}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
  {%- elif message.role == 'tool' %}
    {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
  {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
  {{- '<|im_start|>assistant\\n' }}
{%- endif %}
`.trim();

const tokenizerConfig = {
  tokenizer_class: 'PreTrainedTokenizerFast',
  bos_token: null,
  eos_token: '<|im_end|>',
  pad_token: '<|endoftext|>',
  model_max_length: 131_072,
  chat_template: chatTemplate,
};
