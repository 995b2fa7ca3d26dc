// The tokenizer on a mixed corpus: whether its ids match those of two other implementations, how fast it is, and how late the event
// loop runs with the worst output of a tool.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers';
import { TokenizerLoader } from '@lenml/tokenizers';
import { Pace } from '@millrace/base/pace';
import { openTokenizer, type Tokenizer } from '@millrace/model';
import { type ModelFamily, makeRandom, modelFamilies, modelFolder } from '@millrace/testkit';
import type { BenchReport, BenchRow } from '../report/report.ts';
import { compareWithLlama } from './llama-parity.ts';
import { openRustEncoder, type RustEncoder } from './rust-parity.ts';

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
    const encodeLibrary = openLibrary(family);
    const parity = measureParity({ tokenizer, encodeLibrary }, family, corpus);
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
    const rust = openRustEncoder(modelFolder(family));
    if (rust) {
      const { unequal, ms } = await measureRust(rust, corpus, parity.ours);
      const claim = `${family}: ${unequal} of ${corpus.length} texts differ from the Rust tokenizers ${rust.version}`;
      targets.push({ claim, kept: unequal === 0 });
      rows.push({ what: `${family}: Rust`, unit: 'k tokens/s CPU', samples: [parity.tokens / ms], larger: 'better', against: base });
    }
    const late = await measureLag({ tokenizer, encodeLibrary }, rust);
    const lateBase = rows.length;
    rows.push({ what: `${family}: event loop late, hostile output, library`, unit: 'ms', samples: late.library });
    rows.push({ what: `${family}: event loop late, hostile output, Millrace`, unit: 'ms', samples: late.ours, against: lateBase });
    if (rust) rows.push({ what: `${family}: event loop late, hostile output, Rust`, unit: 'ms', samples: late.rust, against: lateBase });
  }
  targets.push(...(await compareWithLlama(corpus)));
  notes.push(
    `Corpus: ${corpus.length} texts, ${(corpus.join('').length / 1e6).toFixed(2)} million characters of sources, documents, JSON, unicode and runs without spaces. Compared with @huggingface/tokenizers and, as the independent one, @lenml/tokenizers, for each text.`,
    `Event loop: the latest tick while each of ${Object.keys(hostileOutputs()).length} outputs of ${outputChars / 1024} KiB is tokenised, one sample each, the least of three.`,
  );
  return { title: 'Tokenizer', rows, targets, notes };
}

type LibraryEncoder = (text: string) => number[];

function openLibrary(family: ModelFamily): LibraryEncoder {
  const read = (name: string) => JSON.parse(readFileSync(join(modelFolder(family), name), 'utf8'));
  const library = new LibraryTokenizer(read('tokenizer.json'), read('tokenizer_config.json'));
  return (text) => library.encode(text, { add_special_tokens: false }).ids;
}

interface TwoEncoders {
  readonly tokenizer: Tokenizer;
  readonly encodeLibrary: LibraryEncoder;
}

function measureParity({ tokenizer, encodeLibrary }: TwoEncoders, family: ModelFamily, corpus: readonly string[]) {
  const read = (name: string) => JSON.parse(readFileSync(join(modelFolder(family), name), 'utf8'));
  const independent = TokenizerLoader.fromPreTrained({
    tokenizerJSON: read('tokenizer.json'),
    tokenizerConfig: read('tokenizer_config.json'),
  });
  const [ours, oursMs] = timed(() => corpus.map((text) => tokenizer.encodePlain(text)));
  const [library, libraryMs] = timed(() => corpus.map(encodeLibrary));
  const theirs = corpus.map((text) => independent.encode(text, { add_special_tokens: false }));
  const different = ours.filter((ids, index) => ids.join() !== library[index]?.join() || ids.join() !== theirs[index]?.join()).length;
  return { ours, different, oursMs, libraryMs, tokens: ours.reduce((sum, ids) => sum + ids.length, 0) };
}

/** CPU time of all threads: the work is done in one of libuv's. */
async function measureRust(rust: RustEncoder, corpus: readonly string[], ours: readonly Int32Array[]) {
  const before = process.cpuUsage();
  const theirs: number[][] = [];
  for (const text of corpus) theirs.push(await rust.encode(text));
  const { user, system } = process.cpuUsage(before);
  return { unequal: ours.filter((ids, index) => ids.join() !== theirs[index]?.join()).length, ms: (user + system) / 1000 };
}

function timed<T>(work: () => T): [T, number] {
  const before = process.threadCpuUsage();
  const result = work();
  const { user, system } = process.threadCpuUsage(before);
  return [result, (user + system) / 1000];
}

async function measureLag({ tokenizer, encodeLibrary }: TwoEncoders, rust: RustEncoder | undefined) {
  const pace = new Pace();
  const late = { library: [] as number[], ours: [] as number[], rust: [] as number[] };
  for (const text of Object.values(hostileOutputs())) {
    late.library.push(await leastOf(3, () => latestTick(async () => void encodeLibrary(text))));
    late.ours.push(await leastOf(3, () => latestTick(() => pace.run(tokenizer.encodeSteps([{ text, trusted: false }])))));
    if (rust) late.rust.push(await leastOf(3, () => latestTick(() => rust.encode(text))));
  }
  return late;
}

/** Other load on the machine only adds time. */
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

/** The same texts on every machine with the same packages installed. */
function makeCorpus(): string[] {
  const paths = globSync(['packages/*/src/**/*.ts', 'docs/**/*.md', 'node_modules/{fastify,undici,zod,pino}/**/*.{js,md,json,ts}'], {
    cwd: root,
  }).sort();
  const texts: string[] = [...Object.values(hostileOutputs()), ...makeUnicode()];
  let left = corpusChars - texts.reduce((sum, text) => sum + text.length, 0);
  for (const path of paths) {
    const text = readFileSync(join(root, path), 'utf8').slice(0, 20_000);
    if (left < text.length) break;
    if (/<\|?[a-z_]+\|?>|\[\/?[A-Z_]+\]/.test(text)) continue; // control tokens are tokenized differently on purpose
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
