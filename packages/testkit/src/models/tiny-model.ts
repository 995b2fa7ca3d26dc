// A tiny random model with Qwen3's real vocabulary and chat template, for llama.cpp. It says ASCII tokens only, and ends its turns
// by itself now and then; otherwise what it says is noise, the same from every machine.

import { randomUUID } from 'node:crypto';
import { access, mkdir, readFile, rename } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { type GgufTensor, type GgufValue, writeGguf } from './gguf.ts';
import { qwen3Folder } from './qwen3.ts';
import { makeRandom } from './random.ts';

const size = { width: 32, layers: 2, heads: 2, keys: 16, inner: 64, context: 4096 } as const;
/** Part of the file's name: raise it with every change of the model. */
const revision = 1;

const tokenizerFile = z.object({
  model: z.object({
    vocab: z.record(z.string(), z.int()),
    merges: z.array(z.union([z.string(), z.array(z.string()).transform((pair) => pair.join(' '))])),
  }),
  added_tokens: z.array(z.object({ id: z.int(), content: z.string(), special: z.boolean() })),
});

/** Where caches of tests are: outside of the tree, and kept from run to run. */
export function testCacheFolder(): string {
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'millrace');
}

/** The path of the model's GGUF file, which is made where it is not there yet. */
export async function makeTinyModel(folder: string = testCacheFolder()): Promise<string> {
  const path = join(folder, `tiny-qwen3-${revision}.gguf`);
  const isThere = await access(path).then(
    () => true,
    () => false, // then it is made
  );
  if (isThere) return path;
  await mkdir(folder, { recursive: true });
  const vocabulary = await readVocabulary();
  const temporary = `${path}.${randomUUID()}`;
  await writeGguf(temporary, describeModel(vocabulary), makeTensors(vocabulary));
  await rename(temporary, path);
  return path;
}

interface Vocabulary {
  readonly tokens: readonly string[];
  readonly types: Int32Array;
  readonly merges: readonly string[];
  readonly chatTemplate: string;
  readonly endOfTurn: number;
  readonly endOfText: number;
}

const tokenTypes = { normal: 1, control: 3, userDefined: 4, unused: 5 } as const;

async function readVocabulary(): Promise<Vocabulary> {
  const read = async (name: string) => JSON.parse(await readFile(join(qwen3Folder(), name), 'utf8'));
  const { model, added_tokens } = tokenizerFile.parse(await read('tokenizer.json'));
  const { chat_template: chatTemplate } = z.object({ chat_template: z.string() }).parse(await read('tokenizer_config.json'));
  const count = 151_936;
  const tokens = Array.from({ length: count }, (_, id) => `[PAD${id}]`);
  const types = new Int32Array(count).fill(tokenTypes.unused);
  const set = (id: number, text: string, type: number) => {
    tokens[id] = text;
    types[id] = type;
  };
  for (const [text, id] of Object.entries(model.vocab)) set(id, text, tokenTypes.normal);
  for (const { id, content, special } of added_tokens) set(id, content, special ? tokenTypes.control : tokenTypes.userDefined);
  const idOf = (text: string) => tokens.indexOf(text);
  return { tokens, types, merges: model.merges, chatTemplate, endOfTurn: idOf('<|im_end|>'), endOfText: idOf('<|endoftext|>') };
}

function describeModel({ tokens, types, merges, chatTemplate, endOfTurn, endOfText }: Vocabulary): Record<string, GgufValue> {
  const uint32 = (value: number): GgufValue => ({ kind: 'uint32', value });
  return {
    'general.architecture': { kind: 'string', value: 'qwen2' },
    'general.name': { kind: 'string', value: 'tiny' },
    'general.file_type': uint32(1),
    'qwen2.context_length': uint32(size.context),
    'qwen2.embedding_length': uint32(size.width),
    'qwen2.block_count': uint32(size.layers),
    'qwen2.feed_forward_length': uint32(size.inner),
    'qwen2.attention.head_count': uint32(size.heads),
    'qwen2.attention.head_count_kv': uint32(size.keys / (size.width / size.heads)),
    'qwen2.attention.layer_norm_rms_epsilon': { kind: 'float32', value: 1e-6 },
    'qwen2.rope.freq_base': { kind: 'float32', value: 1e6 },
    'tokenizer.ggml.model': { kind: 'string', value: 'gpt2' },
    'tokenizer.ggml.pre': { kind: 'string', value: 'qwen2' },
    'tokenizer.ggml.tokens': { kind: 'strings', value: tokens },
    'tokenizer.ggml.token_type': { kind: 'int32s', value: types },
    'tokenizer.ggml.merges': { kind: 'strings', value: merges },
    'tokenizer.ggml.eos_token_id': uint32(endOfTurn),
    'tokenizer.ggml.bos_token_id': uint32(endOfText),
    'tokenizer.ggml.add_bos_token': { kind: 'bool', value: false },
    'tokenizer.chat_template': { kind: 'string', value: chatTemplate },
  };
}

/** The first dimension is the same for every token and untouched by the layers; by it the head tells words from what is never said. */
function makeTensors(vocabulary: Vocabulary): GgufTensor[] {
  const random = makeRandom(7);
  // Half precision is slow to write: the numbers are drawn from a few thousand that are written once.
  const drawn = Float16Array.from({ length: 4096 }, () => random() + random() + random() - 1.5);
  const drawnSmall = drawn.map((number) => number / 4);
  const makeNoise = (columns: number, rows: number, numbers: Float16Array) => {
    const data = new Float16Array(columns * rows);
    const [from, to] = [new Uint16Array(numbers.buffer), new Uint16Array(data.buffer)];
    let state = (columns * 31 + rows) | 1;
    for (let i = 0; i < to.length; i++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
      to[i] = from[state >>> 20] ?? 0;
    }
    return data;
  };
  const noise = (name: string, columns: number, rows: number): GgufTensor => ({
    name,
    dimensions: [columns, rows],
    data: makeNoise(columns, rows, name.startsWith('blk') ? drawnSmall : drawn),
  });
  const even = (name: string, count: number, value: number): GgufTensor => ({
    name,
    dimensions: [count],
    data: new Float32Array(count).fill(value),
  });
  const { width, inner, keys } = size;
  const embedding = noise('token_embd.weight', width, vocabulary.tokens.length);
  const head = noise('output.weight', width, vocabulary.tokens.length);
  head.data.fill(0, vocabulary.endOfTurn * width, (vocabulary.endOfTurn + 1) * width); // about as likely everywhere
  for (const [id, preference] of preferences(vocabulary).entries()) {
    embedding.data[id * width] = 2;
    head.data[id * width] = preference;
  }
  const layers = Array.from({ length: size.layers }, (_, layer) => {
    const name = (part: string) => `blk.${layer}.${part}`;
    return [
      even(name('attn_norm.weight'), width, 1),
      even(name('ffn_norm.weight'), width, 1),
      noise(name('attn_q.weight'), width, width),
      even(name('attn_q.bias'), width, 0),
      noise(name('attn_k.weight'), width, keys),
      even(name('attn_k.bias'), keys, 0),
      noise(name('attn_v.weight'), width, keys),
      even(name('attn_v.bias'), keys, 0),
      sparing(noise(name('attn_output.weight'), width, width), width),
      noise(name('ffn_gate.weight'), width, inner),
      noise(name('ffn_up.weight'), width, inner),
      sparing(noise(name('ffn_down.weight'), inner, width), inner),
    ];
  });
  return [embedding, even('output_norm.weight', width, 1), head, ...layers.flat()];
}

/** Nothing is written to the first dimension. */
function sparing(tensor: GgufTensor, columns: number): GgufTensor {
  tensor.data.fill(0, 0, columns);
  return tensor;
}

function preferences({ tokens, types, endOfTurn }: Vocabulary): number[] {
  return tokens.map((text, id) => {
    if (id === endOfTurn) return 7;
    // In a byte-level vocabulary Ġ is a space and Ċ a newline.
    return types[id] === tokenTypes.normal && /^[!-~ĠĊ]+$/.test(text) ? 0 : -200;
  });
}
