// The texts that tokenizers are compared on, from a fixed seed: prose, code, white space of all kinds, digits, scripts, marks, emoji, long
// runs, contractions, and the spellings of control tokens.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');

export function makeRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const spaces = [
  ' ',
  '  ',
  '   ',
  '\t',
  '\n',
  '\n\n',
  '\r\n',
  '\r',
  ' \n',
  '\n ',
  '\u00a0',
  '\u0085',
  '\u2003',
  '\u3000',
  '\u200b',
  '\ufeff',
  '\u2028',
  '\v\f',
];
const words = [
  'the',
  'The',
  'HTTPServer',
  'don’t',
  "don't",
  "I'LL",
  "we'Ve",
  "'ſ",
  "it's",
  'naïve',
  'Straße',
  'x',
  'a1b2',
  'foo_bar',
  'ǅ',
  'ﬁ',
  'ſ',
  'İi',
];
const signs = [
  '.',
  ',',
  '!?',
  '...',
  '#',
  '//',
  '/*',
  '*/',
  '{}',
  '();',
  '=>',
  '<=',
  '$x',
  '€',
  '§',
  '„“',
  '—',
  '¿',
  '~',
  '`',
  '|',
  '^',
  '+',
  '\\',
  '"',
  '°',
  '×',
];
const numbers = ['0', '7', '42', '123', '2024', '3.14', '1,000,000', '0x1F', '1e-7', '١٢٣', '१२३', '²³', '½', 'Ⅻ', '①', '〇', '１２'];
const scripts = [
  '日本語',
  '東京',
  'ひらがな',
  'カタカナ',
  'ｶﾞ',
  '한국어',
  '한',
  'Ελλάδα',
  'Привет',
  'Ёлка',
  'שלום',
  'مرحبا',
  'สวัสดี',
  'नमस्ते',
  'ქართული',
  '𐐷',
  '𠮷',
  'ꙮ',
];
const marks = [
  'e\u0301',
  'a\u0308\u0323',
  'a\u0323\u0308',
  '\u0301',
  'q\u0307\u0323',
  '\u1100\u1161\u11a8',
  '가\u11a8',
  '\u0344',
  'Å',
  '\u212b',
  'ﷺ',
  '℀',
];
const emoji = ['🙂', '👩‍👩‍👧', '🇩🇪', '👍🏽', '☺️', '🏳️‍🌈', '\u{1f9ff}'];
const html = ['<b>', '</b>', '<table>', '<h1>', '<br>', '<bx>', '<', '>', '&amp;', '▁', '▁▁', '<0x41>', 'Ġ', 'Ċ', '<s>', '</s>', '<unk>'];
const runs = [
  'a'.repeat(70),
  ' '.repeat(40),
  '\n'.repeat(20),
  '-'.repeat(80),
  '='.repeat(33),
  '9'.repeat(25),
  '日'.repeat(50),
  '\t'.repeat(9),
  'ab'.repeat(60),
  '🙂'.repeat(20),
];
const groups = [spaces, spaces, words, words, words, signs, numbers, scripts, marks, emoji, html, runs];

/** `spellings` are texts of the tokenizer's own added tokens. */
export function makeTexts(count: number, spellings: readonly string[]): string[] {
  const random = makeRandom(20_261_116);
  const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)];
  const files = readFiles();
  return Array.from({ length: count }, (_, index) => {
    if (index % 4 === 0) return sliceOf(pick(files) ?? '', random);
    if (index % 16 === 1) return Array.from({ length: 12 }, () => randomCharacter(random)).join(random() < 0.5 ? '' : ' ');
    const pieces = Array.from({ length: 1 + Math.floor(random() * 24) }, () => {
      const spelling = random() < 0.04 ? pick(spellings) : undefined;
      return spelling ?? pick(pick(groups) ?? words) ?? '';
    });
    return pieces.join(random() < 0.3 ? ' ' : '');
  });
}

function readFiles(): string[] {
  const folders = [
    'docs',
    'packages/server/src',
    'packages/server/src/http',
    'packages/client-python/src/millrace',
    'world/models',
    'scripts',
  ];
  const paths = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { withFileTypes: true }).flatMap((file) => (file.isFile() ? [join(root, folder, file.name)] : [])),
  );
  return paths.filter((path) => /\.(ts|md|py|sh|json)$/.test(path)).map((path) => readFileSync(path, 'utf8'));
}

function sliceOf(text: string, random: () => number): string {
  const begin = Math.floor(random() * text.length);
  return text.slice(begin, begin + 20 + Math.floor(random() * 600)).toWellFormed();
}

function randomCharacter(random: () => number): string {
  for (;;) {
    const code = Math.floor(random() < 0.7 ? random() * 0x3000 : random() < 0.5 ? random() * 0x1_0000 : random() * 0x2_0000);
    const character = String.fromCodePoint(code);
    if (/[^\p{Cn}\p{Cs}\p{Co}]/u.test(character)) return character;
  }
}

/** About one megabyte of the files of this repository. */
export function makeDocuments(): string {
  const text = readFiles().join('\n');
  return text.repeat(Math.ceil(1_000_000 / text.length)).slice(0, 1_000_000);
}
