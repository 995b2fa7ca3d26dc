// The files of a model's tokenizer, read and checked: tokenizer.json with tokenizer_config.json, or Mistral's tekken.json. A folder with
// neither is refused with what it has and how to convert it.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describeIssues, messageOf } from '@millrace/protocol';
import { z } from 'zod';
import { type AddedToken, addedToken } from './added-tokens.ts';
import { readTekken } from './tekken.ts';

export interface TokenizerFiles {
  readonly added: readonly AddedToken[];
  readonly normalizer: unknown;
  readonly preTokenizer: unknown;
  readonly model: unknown;
  readonly decoder: unknown;
  readonly vocab: ReadonlyMap<string, number>;
  readonly eosIds: readonly number[];
}

const tokenText = z.union([z.string(), z.object({ content: z.string() }).transform(({ content }) => content)]);
/** Either the texts in the order of their ids, each with a score, or the id of each text. */
const vocabulary = z.looseObject({
  // Checking each of hundreds of thousands of entries would take seconds.
  vocab: z.custom<readonly [string, number][] | Readonly<Record<string, number>>>((value) => typeof value === 'object' && value !== null),
});
const tokenizerFile = z.looseObject({
  added_tokens: z.array(addedToken).default([]),
  normalizer: z.unknown(),
  pre_tokenizer: z.unknown(),
  model: z.unknown().refine((model) => vocabulary.safeParse(model).success, 'has no model with a vocabulary'),
  decoder: z.unknown(),
});
const configFile = z.looseObject({ eos_token: tokenText.nullish() });
const generationFile = z.looseObject({ eos_token_id: z.union([z.int(), z.array(z.int())]).nullish() });

/** The file with the vocabulary, and the content of tokenizer_config.json, which a folder with tekken.json may lack. */
interface TokenizerSource {
  readonly vocabulary: Buffer;
  readonly config: Readonly<Record<string, unknown>>;
}

/** The files as they are; for a folder that `readTokenizerFiles` accepts. */
export async function readTokenizerSource(folder: string): Promise<TokenizerSource> {
  const names = await listFolder(folder);
  const hasJson = names.includes('tokenizer.json');
  const config = names.includes('tokenizer_config.json')
    ? JSON.parse(await readFile(join(folder, 'tokenizer_config.json'), 'utf8'))
    : { bos_token: '<s>', eos_token: '</s>' };
  return { vocabulary: await readFile(join(folder, hasJson ? 'tokenizer.json' : (findTekken(names) ?? ''))), config };
}

function findTekken(names: readonly string[]): string | undefined {
  return names.find((name) => /^tekken.*\.json$/.test(name));
}

/** Throws an Error that names the folder, what is missing or broken, and what to do. */
export async function readTokenizerFiles(folder: string): Promise<TokenizerFiles> {
  const names = await listFolder(folder);
  const [config, generation] = await Promise.all([
    names.includes('tokenizer_config.json') ? readJson(folder, 'tokenizer_config.json', configFile) : undefined,
    names.includes('generation_config.json') ? readJson(folder, 'generation_config.json', generationFile) : undefined,
  ]);
  const toEosIds = (eos: number | undefined) => [...new Set([eos ?? [], generation?.eos_token_id ?? []].flat())];
  if (!names.includes('tokenizer.json')) {
    const tekken = findTekken(names);
    if (tekken === undefined) throw new Error(`no tokenizer.json in ${folder}: ${await describeMissing(folder, names)}`);
    const { eosId, ...files } = await readTekken(join(folder, tekken));
    return { ...files, eosIds: toEosIds(eosId) };
  }
  if (!config)
    throw new Error(`no tokenizer_config.json in ${folder}: it names the token that ends a text; copy it from the model's repository`);
  const file = await readJson(folder, 'tokenizer.json', tokenizerFile);
  const eosId = config.eos_token ? file.added_tokens.find(({ content }) => content === config.eos_token)?.id : undefined;
  return {
    added: file.added_tokens,
    normalizer: file.normalizer,
    preTokenizer: file.pre_tokenizer,
    model: file.model,
    decoder: file.decoder,
    vocab: toVocabulary(vocabulary.parse(file.model).vocab),
    eosIds: toEosIds(eosId),
  };
}

function toVocabulary(vocab: z.infer<typeof vocabulary>['vocab']): ReadonlyMap<string, number> {
  const ids = new Map<string, number>();
  // Pairs from `Object.entries` would take as long again.
  if (isList(vocab)) for (const [id, [token]] of vocab.entries()) ids.set(token, id);
  else for (const token in vocab) ids.set(token, vocab[token] ?? -1);
  return ids;
}

const isList: (value: object) => value is readonly unknown[] = Array.isArray;

async function listFolder(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    const [why, remedy] =
      code === 'ENOENT'
        ? ['there is no such folder', "to the model's folder, with tokenizer.json"]
        : code === 'ENOTDIR'
          ? ['it is a file', 'to the folder that it is in']
          : [messageOf(error), 'to a folder that can be read'];
    throw new Error(`the model folder ${folder} cannot be read: ${why}. Set model.tokenizer ${remedy}`, { cause: error });
  }
}

async function readJson<T>(folder: string, name: string, schema: z.ZodType<T>): Promise<T> {
  const path = join(folder, name);
  try {
    return schema.parse(JSON.parse(await readText(path)));
  } catch (error) {
    const why = error instanceof z.ZodError ? describeIssues(error.issues) : messageOf(error);
    throw new Error(`${path} is broken: ${why}. Download it again from the model's repository`, { cause: error });
  }
}

async function readText(path: string): Promise<string> {
  const text = (await readFile(path)).toString(); // decoding it in pieces would take twice as long
  if (text.trim() === '') throw new Error('it is empty');
  if (text.startsWith('version https://git-lfs')) throw new Error('it is a pointer of Git LFS, so run git lfs pull');
  return text;
}

/** What other tokenizers leave in a folder, and what they are. */
const others: readonly (readonly [RegExp, string])[] = [
  [/tiktoken/, 'a tiktoken vocabulary, whose split pattern is in the code of the model'],
  [/^tokenizer\.model(\.v\d+)?$|\.spm$|\.model$/, 'a SentencePiece model'],
  [/^vocab\.json$|^merges\.txt$/, 'the files of a slow tokenizer'],
  [/\.gguf$/, 'a GGUF file'],
];

async function describeMissing(folder: string, names: readonly string[]): Promise<string> {
  for (const [name, what] of others) {
    const found = names.find((one) => name.test(one));
    if (found !== undefined) return `it has ${found}, ${what}; ${describeConversion(folder, found)}`;
  }
  if (names.some((name) => /\.(safetensors|bin|pth?)$/.test(name)))
    return "it has weights but no tokenizer; copy tokenizer.json and tokenizer_config.json from the model's repository";
  const inner = await findInner(folder, names);
  if (inner !== undefined) return `${inner} in it has one. Set model.tokenizer to ${join(folder, inner)}`;
  const seen = names.length === 0 ? 'it is empty' : `it has ${names.slice(0, 5).join(', ')}${names.length > 5 ? ', …' : ''}`;
  return `${seen}. Set model.tokenizer to the model's folder with tokenizer.json and tokenizer_config.json, or to the address of a backend`;
}

function describeConversion(folder: string, found: string): string {
  if (found.endsWith('.gguf'))
    return "take tokenizer.json and tokenizer_config.json from the original model's repository, or set model.tokenizer to the address of a llama-server that serves the file";
  return `convert it with: python -c "from transformers import AutoTokenizer; AutoTokenizer.from_pretrained('${folder}', trust_remote_code=True).save_pretrained('${folder}')"`;
}

/** The first folder inside that has a tokenizer: the parent of a model was named. */
async function findInner(folder: string, names: readonly string[]): Promise<string | undefined> {
  for (const name of names.slice(0, 100)) {
    const inner: string[] = await readdir(join(folder, name)).catch(() => []); // a file
    if (inner.includes('tokenizer.json')) return name;
  }
  return undefined;
}
