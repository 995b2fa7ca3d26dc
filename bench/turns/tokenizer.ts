// The tokenizer on a mixed corpus: whether its ids are those of two other implementations, how fast it is, and how late the
// event loop runs under the worst that a tool can print.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { TokenizerLoader } from '@lenml/tokenizers';
import { openTokenizer, Pace, type Tokenizer } from '@millrace/server';
import { type ModelFamily, makeRandom, modelFamilies, modelFolder } from '@millrace/testkit';
import type { BenchReport, BenchRow } from '../report/report.ts';
import { compareWithLlama } from './llama-parity.ts';
import { encodeWithRust } from './rust-parity.ts';

const root = join(import.meta.dirname, '../..');
const corpusChars = 2_000_000;
const outputChars = 32 * 1024;

export async function runTokenizerBench(): Promise<BenchReport> {
  const corpus = makeCorpus();
  const rows: BenchRow[] = [];
  const notes: string[] = [];
  const targets: { claim: string; kept: boolean }[] = [];
  for (const family of modelFamilies) {
    const tokenizer = await openTokenizer(modelFolder(family));
    const parity = measureParity(tokenizer, family, corpus);
    targets.push({
      claim: `${family}: ${parity.different} of ${corpus.length} texts (${parity.tokens} tokens) differ from either`,
      kept: parity.different === 0,
    });
    const base = rows.length;
    rows.push({ what: `${family}: library`, unit: 'k tokens/s CPU', samples: [parity.tokens / parity.libraryMs], larger: 'better' });
    rows.push({
      what: `${family}: Millrace`,
      unit: 'k tokens/s CPU',
      samples: [parity.tokens / parity.oursMs],
      larger: 'better',
      against: base,
    });
    const rust = encodeWithRust(modelFolder(family), corpus);
    if (rust) {
      const unequal = parity.ours.filter((ids, index) => ids.join() !== rust.ids[index]?.join()).length;
      const claim = `${family}: ${unequal} of ${corpus.length} texts differ from the Rust tokenizers ${rust.version}`;
      targets.push({ claim, kept: unequal === 0 });
      const what = `${family}: Rust tokenizers ${rust.version} through Python, one thread`;
      rows.push({ what, unit: 'k tokens/s CPU', samples: [parity.tokens / rust.ms], larger: 'better', against: base });
    }
    const late = await measureLag(tokenizer);
    const lateBase = rows.length;
    rows.push({ what: `${family}: event loop late, hostile output, library`, unit: 'ms', samples: late.library });
    rows.push({ what: `${family}: event loop late, hostile output, Millrace`, unit: 'ms', samples: late.ours, against: lateBase });
  }
  targets.push(...(await compareWithLlama(corpus)));
  notes.push(
    `Corpus: ${corpus.length} texts, ${(corpus.join('').length / 1e6).toFixed(2)} million characters of sources, documents, JSON, unicode and runs without spaces. Compared with @huggingface/tokenizers and, as the independent one, @lenml/tokenizers, for each text.`,
    `Event loop: the latest tick while each of ${Object.keys(hostileOutputs()).length} outputs of ${outputChars / 1024} KiB is tokenised, one sample each, the least of three.`,
  );
  return { title: 'Tokenizer', rows, targets, notes };
}

function measureParity(tokenizer: Tokenizer, family: ModelFamily, corpus: readonly string[]) {
  const read = (name: string) => JSON.parse(readFileSync(join(modelFolder(family), name), 'utf8'));
  const independent = TokenizerLoader.fromPreTrained({
    tokenizerJSON: read('tokenizer.json'),
    tokenizerConfig: read('tokenizer_config.json'),
  });
  const [ours, oursMs] = timed(() => corpus.map((text) => tokenizer.encodePlain(text)));
  const [library, libraryMs] = timed(() => corpus.map((text) => tokenizer.encode(text)));
  const theirs = corpus.map((text) => independent.encode(text, { add_special_tokens: false }));
  const different = ours.filter((ids, index) => ids.join() !== library[index]?.join() || ids.join() !== theirs[index]?.join()).length;
  return { ours, different, oursMs, libraryMs, tokens: ours.reduce((sum, ids) => sum + ids.length, 0) };
}

function timed<T>(work: () => T): [T, number] {
  const before = process.threadCpuUsage();
  const result = work();
  const { user, system } = process.threadCpuUsage(before);
  return [result, (user + system) / 1000];
}

async function measureLag(tokenizer: Tokenizer): Promise<{ library: number[]; ours: number[] }> {
  const pace = new Pace();
  const late = { library: [] as number[], ours: [] as number[] };
  for (const text of Object.values(hostileOutputs())) {
    late.library.push(await leastOf(3, () => latestTick(async () => void tokenizer.encode(text))));
    late.ours.push(await leastOf(3, () => latestTick(() => pace.run(tokenizer.encodeSteps([{ text, trusted: false }])))));
  }
  return late;
}

/** What else runs on the machine only ever adds. */
async function leastOf(times: number, measure: () => Promise<number>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let time = 0; time < times; time++) least = Math.min(least, await measure());
  return least;
}

async function latestTick(work: () => Promise<unknown>): Promise<number> {
  const tick = () => new Promise((resolve) => setTimeout(resolve, 2));
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  histogram.enable();
  await tick();
  await work();
  await tick();
  histogram.disable();
  return Math.max(0, histogram.max / 1e6 - 1);
}

function hostileOutputs(): Record<string, string> {
  const random = makeRandom(1);
  const draw = (letters: readonly string[]) =>
    Array.from({ length: outputChars }, () => letters[Math.floor(random() * letters.length)]).join('');
  return {
    letter: 'a'.repeat(outputChars),
    spaces: ' '.repeat(outputChars),
    dashes: '-'.repeat(outputChars),
    letters: draw([...'abcdefghijklmnopqrstuvwxyz']),
    base64: draw([...'ABCDEFGHabcdefgh0123456789+/']),
    digits: draw([...'0123456789']),
    punctuation: draw([...'!@#$%^&*()_+[]{}|;:,.<>/?']),
    cjk: draw([...'日本語中文字符漢字測試龍鳳']).slice(0, outputChars / 3),
  };
}

/** The same texts wherever the same packages are installed. */
function makeCorpus(): string[] {
  const paths = globSync(['packages/*/src/**/*.ts', 'docs/**/*.md', 'node_modules/{fastify,undici,zod,pino}/**/*.{js,md,json,ts}'], {
    cwd: root,
  }).sort();
  const texts: string[] = [...Object.values(hostileOutputs()), ...makeUnicode()];
  let left = corpusChars - texts.reduce((sum, text) => sum + text.length, 0);
  for (const path of paths) {
    const text = readFileSync(join(root, path), 'utf8').slice(0, 20_000);
    if (left < text.length) break;
    if (/<\|?[a-z_]+\|?>|\[\/?[A-Z_]+\]/.test(text)) continue; // what spells a control token is read otherwise on purpose
    left -= text.length;
    texts.push(text);
  }
  return texts;
}

function makeUnicode(): string[] {
  const random = makeRandom(2);
  const ranges = [
    [0x20, 0x7e],
    [0xa0, 0x24f],
    [0x370, 0x5ff],
    [0x900, 0xdff],
    [0x3040, 0x30ff],
    [0x4e00, 0x9fff],
    [0xac00, 0xd7a3],
    [0x1f300, 0x1faff],
  ] as const;
  return Array.from({ length: 200 }, () =>
    Array.from({ length: 500 }, () => {
      if (random() < 0.15) return [' ', '\n', '\t', '\r\n', '  '][Math.floor(random() * 5)];
      const [from, to] = ranges[Math.floor(random() * ranges.length)] ?? [0x20, 0x7e];
      return String.fromCodePoint(from + Math.floor(random() * (to - from + 1)));
    }).join(''),
  );
}
