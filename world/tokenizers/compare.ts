// Compares our tokenizers with Rust's, over all published tokenizers and thousands of texts. Prints, for each, the texts that differ, the
// speed of both, and the longest step for a megabyte of hostile text:
// node world/tokenizers/compare.ts [--texts 4000] [--differences] [--no-steps] [name…]

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openTokenizer } from '@millrace/model';
import { z } from 'zod';
import { type LongestStep, makeHostileTexts, measureLongest } from '../../packages/model/test/tokenizer/hostile-texts.ts';
import { openCollection, type PublishedTokenizer, referencePython } from './collection.ts';
import { makeDocuments, makeTexts } from './texts.ts';
import { openNewCharacters } from './unicode-tables.ts';

export interface TokenizerComparison {
  readonly name: string;
  readonly texts: number;
  /** Texts whose ids or, for those ids, whose decoded text differ from the reference's. */
  readonly differences: readonly string[];
  /** Texts that differ and have a character for which both sides have other Unicode tables. */
  readonly newCharacters: number;
  /** Texts that spell a control token, all of which must stay plain text if they are untrusted. */
  readonly forged: number;
  /** Our speed divided by the reference's, both by processor time. */
  readonly speed: number;
  /** Of all steps of all hostile texts, by processor time of the thread. Absent if they were not measured. */
  readonly longest?: LongestStep;
}

interface CompareOptions {
  readonly count: number;
  /** From `openNewCharacters`. */
  readonly isNew: (text: string) => boolean;
  readonly measuresSteps: boolean;
}

/** The aim for each step of a megabyte. */
export const longestAllowedMs = 20;

const reply = z.object({
  ids: z.array(z.array(z.int())),
  plain: z.array(z.array(z.int())),
  decoded: z.array(z.string()),
  seconds: z.number(),
});

export async function compareTokenizer(published: PublishedTokenizer, options: CompareOptions): Promise<TokenizerComparison> {
  const { name, folder, file } = published;
  const { count, isNew, measuresSteps } = options;
  const isTekken = file.endsWith('tekken.json');
  const tokenizer = await openTokenizer(folder);
  const control = tokenizer.controlTokens;
  const texts = makeTexts(count, isTekken ? [] : control.slice(0, 60));
  const half = texts.length >> 1; // both sides are measured on the second half, when they have warmed up
  const encode = (text: string) => (isTekken ? tokenizer.encodePlain(text) : tokenizer.encode(text));
  const first = texts.slice(0, half).map(encode);
  const before = process.threadCpuUsage();
  const second = texts.slice(half).map(encode);
  const seconds = toMs(process.threadCpuUsage(before)) / 1000;
  const ours = [...first, ...second].map((ids) => [...ids]);
  const input = JSON.stringify({ texts, control, ids: ours });
  const output = execFileSync(referencePython, [join(import.meta.dirname, 'reference.py'), file], { input, maxBuffer: 1 << 30 });
  const wanted = reply.parse(JSON.parse(output.toString()));
  const controlIds = new Set(control.map((text) => tokenizer.idOf(text)));
  const differences: string[] = [];
  let [newCharacters, forged] = [0, 0];
  for (const [index, text] of texts.entries()) {
    const plain = tokenizer.encodePlain(text);
    if (plain.some((id) => controlIds.has(id) && id !== tokenizer.idOf('<unk>'))) forged += 1;
    const found = [
      ...diff('ids', ours[index], wanted.ids[index]),
      ...diff('plain', [...plain], wanted.plain[index]),
      ...(isTekken ? [] : diff('decoded', tokenizer.decode(ours[index] ?? []), wanted.decoded[index])),
    ];
    if (found.length === 0) continue;
    if (isNew(text)) newCharacters += 1;
    else differences.push(`${JSON.stringify(text)}: ${found.join('; ')}`);
  }
  const longest = measuresSteps ? { longest: measureLongest(tokenizer, megabytes(), longestAllowedMs) } : {};
  return { name, texts: texts.length, differences, newCharacters, forged, speed: wanted.seconds / seconds, ...longest };
}

function diff(what: string, seen: unknown, wanted: unknown): string[] {
  const [one, other] = [JSON.stringify(seen), JSON.stringify(wanted)];
  return one === other ? [] : [`${what} ${one} instead of ${other}`];
}

function megabytes(): ReadonlyMap<string, string> {
  return new Map([...makeHostileTexts(), ['documents and code', makeDocuments()]]);
}

function toMs({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1000;
}

export function toTable(rows: readonly TokenizerComparison[]): string {
  const lines = rows.map(
    (one) =>
      `| ${one.name} | ${one.texts} | ${one.differences.length} | ${one.newCharacters} | ${one.forged} | ${one.speed.toFixed(1)} × | ${describeLongest(one.longest)} |`,
  );
  const head =
    '| tokenizer | texts | differ | differ by new code points | forged control tokens | speed against Rust | longest step for 1 MB |';
  return [head, '|---|---:|---:|---:|---:|---:|---|', ...lines].join('\n');
}

function describeLongest(longest: LongestStep | undefined): string {
  return longest ? `${longest.ms.toFixed(1)} ms (${longest.text})` : '–';
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: {
      texts: { type: 'string', default: '4000' },
      differences: { type: 'boolean', default: false },
      steps: { type: 'boolean', default: true },
    },
    allowNegative: true,
    allowPositionals: true,
  });
  const rows: TokenizerComparison[] = [];
  const options = { count: Number(values.texts), isNew: openNewCharacters(), measuresSteps: values.steps };
  const isWanted = (name: string) => positionals.length === 0 || positionals.some((part) => name.includes(part));
  for (const published of openCollection(isWanted)) {
    const row = await compareTokenizer(published, options);
    rows.push(row);
    console.log(toTable([row]).split('\n').at(-1));
    if (values.differences) for (const one of row.differences.slice(0, 5)) console.log(`  ${one.slice(0, 600)}`);
  }
  console.log(`\n${toTable(rows)}`);
}
