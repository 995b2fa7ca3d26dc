// The published tokenizers that ours is compared on, each a folder with tokenizer.json or tekken.json. Vocabularies of llama.cpp are
// written as tokenizer.json, with the pre-tokenizers that their models have.

import { copyFileSync, existsSync, globSync, mkdirSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { writeTokenizer } from '../engines/gguf-tokenizer.ts';
import { modelFolder, worldCacheFolder } from '../engines/world-cache.ts';

export const tokenizersFolder = join(worldCacheFolder(), 'tokenizers');
export const referencePython = join(tokenizersFolder, 'python/bin/python');

export function skipWithoutTokenizers(): string | false {
  return existsSync(join(tokenizersFolder, '.complete')) ? false : 'run world/tokenizers/install.sh first';
}

const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
const bytesOnly = { ...byteLevel, use_regex: false };
const splitAt = (pattern: string) => ({ type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false });
const digits = { type: 'Digits', individual_digits: true };
const sequence = (...pretokenizers: object[]) => ({ type: 'Sequence', pretokenizers });
const cjk = splitAt('[一-龥ࠀ-一가-퟿]+');
const qwen35 = splitAt(
  String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
);

/** The pre-tokenizers of the models whose vocabularies llama.cpp has. Gemma 4's file says enough by itself. */
const preTokenizers: Readonly<Record<string, object>> = {
  aquila: byteLevel,
  'gpt-neox': byteLevel,
  mpt: byteLevel,
  starcoder: sequence(digits, byteLevel),
  refact: sequence(digits, byteLevel),
  'command-r': sequence(digits, byteLevel),
  falcon: sequence(
    { type: 'Punctuation', behavior: 'Contiguous' },
    byteLevel,
    { type: 'Digits', individual_digits: false },
    splitAt('[0-9][0-9][0-9]'),
  ),
  'deepseek-coder': sequence(
    splitAt(String.raw`[\r\n]`),
    splitAt(String.raw`\s?\p{L}+`),
    splitAt(String.raw`\s?\p{P}+`),
    cjk,
    digits,
    bytesOnly,
  ),
  'deepseek-llm': sequence(
    splitAt(String.raw`[\r\n]`),
    splitAt(String.raw`\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽＡ-Ｚａ-ｚ]+`),
    splitAt(String.raw`\s?[!-/:-~！-／：-～‘-‟　-。]+`),
    splitAt(String.raw`\s+$`),
    cjk,
    digits,
    bytesOnly,
  ),
  qwen35: sequence(qwen35, bytesOnly),
  'gemma-4': {},
};

export interface PublishedTokenizer {
  readonly name: string;
  readonly folder: string;
  /** The file that the reference reads. */
  readonly file: string;
}

/** `isWanted` chooses by name: a vocabulary of llama.cpp takes a second to write. */
export function openCollection(isWanted: (name: string) => boolean = () => true): PublishedTokenizer[] {
  const npm = readdirSync(join(tokenizersFolder, 'npm')).map((name) => toPublished(`npm/${name}`, join(tokenizersFolder, 'npm', name)));
  const llama = Object.entries(preTokenizers).flatMap(([name, preTokenizer]) => {
    const gguf = join(tokenizersFolder, 'llama.cpp', `ggml-vocab-${name}.gguf`);
    if (!existsSync(gguf) || !isWanted(`llama.cpp/${name}`)) return [];
    const folder = join(tokenizersFolder, 'written', name);
    writeTokenizer(gguf, folder, preTokenizer);
    return [toPublished(`llama.cpp/${name}`, folder)];
  });
  const mistral = globSync('python/lib/*/site-packages/mistral_common/data/tekken_*.json', { cwd: tokenizersFolder }).map((path) => {
    const name = basename(path, '.json');
    const folder = join(tokenizersFolder, 'written', name);
    mkdirSync(folder, { recursive: true });
    copyFileSync(join(tokenizersFolder, path), join(folder, 'tekken.json'));
    return { name: `mistral-common/${name}`, folder, file: join(folder, 'tekken.json') };
  });
  const smol = existsSync(join(modelFolder(), 'tokenizer.json')) ? [toPublished('SmolLM2', modelFolder())] : [];
  return [...npm, ...llama, ...mistral, ...smol].filter(({ name }) => isWanted(name));
}

function toPublished(name: string, folder: string): PublishedTokenizer {
  return { name, folder, file: join(folder, 'tokenizer.json') };
}
