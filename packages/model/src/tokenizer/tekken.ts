// Mistral's tekken.json: a byte-level vocabulary with ranks instead of merges. Two tokens merge if their bytes together are a token, the
// lowest rank first, so each split of a token is a merge of its rank.

import { readFile } from 'node:fs/promises';
import { describeIssues, messageOf } from '@millrace/protocol';
import { z } from 'zod';
import type { AddedToken } from './added-tokens.ts';
import { toLetters } from './model/byte-letters.ts';

const special = z.looseObject({ rank: z.int(), token_str: z.string() });
const tekkenFile = z.looseObject({
  config: z.looseObject({ pattern: z.string(), default_vocab_size: z.int(), default_num_special_tokens: z.int() }),
  vocab: z.array(z.looseObject({ rank: z.int(), token_bytes: z.string() })),
  special_tokens: z.array(special).nullish(),
});

/** The special tokens of files that do not list them. */
const firstSpecials = [
  '<unk>',
  '<s>',
  '</s>',
  '[INST]',
  '[/INST]',
  '[AVAILABLE_TOOLS]',
  '[/AVAILABLE_TOOLS]',
  '[TOOL_RESULTS]',
  '[/TOOL_RESULTS]',
  '[TOOL_CALLS]',
  '[IMG]',
  '<pad>',
  '[IMG_BREAK]',
  '[IMG_END]',
  '[PREFIX]',
  '[MIDDLE]',
  '[SUFFIX]',
] as const;

interface TekkenFiles {
  readonly added: readonly AddedToken[];
  readonly normalizer: unknown;
  readonly preTokenizer: unknown;
  readonly model: unknown;
  readonly decoder: unknown;
  readonly vocab: ReadonlyMap<string, number>;
  readonly eosId: number | undefined;
}

/** Throws an Error that names the file. */
export async function readTekken(path: string): Promise<TekkenFiles> {
  try {
    return toFiles(tekkenFile.parse(JSON.parse(await readFile(path, 'utf8'))));
  } catch (error) {
    const why = error instanceof z.ZodError ? describeIssues(error.issues) : messageOf(error);
    throw new Error(`${path} is broken: ${why}. Download it again from the model's repository`, { cause: error });
  }
}

function toFiles({ config, vocab, special_tokens }: z.infer<typeof tekkenFile>): TekkenFiles {
  const specials = config.default_num_special_tokens;
  const used = vocab.slice(0, config.default_vocab_size - specials);
  const ids = new Map(used.map(({ rank, token_bytes }) => [toLetters(Buffer.from(token_bytes, 'base64')), specials + rank]));
  const listed = special_tokens ?? firstSpecials.map((token_str, rank) => ({ rank, token_str }));
  const named = new Map(listed.map(({ rank, token_str }) => [rank, token_str]));
  const flags = { lstrip: false, rstrip: false, single_word: false, normalized: false, special: true };
  const added = Array.from({ length: specials }, (_, id) => ({ id, content: named.get(id) ?? `<SPECIAL_${id}>`, ...flags }));
  const split = { type: 'Split', pattern: { Regex: config.pattern }, behavior: 'Isolated', invert: false };
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, use_regex: false };
  return {
    added,
    normalizer: undefined,
    preTokenizer: { type: 'Sequence', pretokenizers: [split, byteLevel] },
    model: { type: 'BPE', vocab: Object.fromEntries(ids), merges: findMerges(ids), ignore_merges: true },
    decoder: { type: 'ByteLevel' },
    vocab: ids,
    eosId: added.find(({ content }) => content === '</s>')?.id,
  };
}

/** Letters are one code unit each, so every split of a token is a split of its bytes. */
function findMerges(ids: ReadonlyMap<string, number>): readonly (readonly [string, string, number])[] {
  const merges: [string, string, number][] = [];
  for (const [token, rank] of ids)
    for (let at = 1; at < token.length; at++) {
      const [left, right] = [token.slice(0, at), token.slice(at)];
      if (ids.has(left) && ids.has(right)) merges.push([left, right, rank]);
    }
  return merges;
}
