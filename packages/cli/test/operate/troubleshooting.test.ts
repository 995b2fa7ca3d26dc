// Claims about docs/troubleshooting.md, so that it keeps up with what the code prints: every message, log event, setting and option that
// the page names is one that the code has.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { errorCodes } from '@millrace/protocol';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const read = (path: string) => readFileSync(`${root}${path}`, 'utf8');
const page = read('docs/troubleshooting.md');
/** The first cell of each row of the symptoms. */
const symptoms = (page.split('## Symptoms')[1] ?? '')
  .split('## Error codes')[0]
  ?.split('\n')
  .flatMap((line) => /^\| (.+?) \| .* \| .* \|$/.exec(line)?.[1] ?? []);
const sources = globSync('packages/{protocol,base,model,engines,sandbox,store,scenarios,answers,server,worker,gateway,cli}/src/**/*.ts', {
  cwd: root,
}).map(read);

/** Said by the kernel, bubblewrap, Node.js or an engine. */
const ofOthers = [
  'Operation not permitted',
  "Can't mount proc on /newroot/proc",
  'connect ECONNREFUSED',
  'EMFILE: too many open files',
  'ENFILE',
  'ENOSPC: System limit for number of file watchers reached',
  'EAGAIN',
  'EMFILE',
  'spawn bwrap ENOENT',
];

test('every message that the page explains is printed by the code', () => {
  const strings = sources.flatMap(toStrings);
  const messages = (symptoms ?? []).filter((cell) => !cell.startsWith('log ')).flatMap(toCodeSpans);
  const unknown = messages.flatMap((message) => toFragments(message).filter((part) => !isPrinted(part, strings)));
  assert.ok(messages.length > 40, 'messages were read');
  assert.deepEqual(unknown, []);
});

test('a message that the code no longer prints would be found', () => {
  const strings = toStrings(['throw new Error(`$', '{host} is in use by $', "{'another'} service`);"].join(''));
  assert.deepEqual(
    ['127.0.0.1:8007 is in use by X service', '127.0.0.1:8007 is in use', '127.0.0.1:8007 is taken by X service'].map((part) =>
      isPrinted(part, strings),
    ),
    [true, true, false],
  );
});

test('every check that can stop a start has its row', () => {
  const names = [...read('packages/server/src/start-checks.ts').matchAll(/const name = '([^']+)'/g)].map(([, name = '']) => name);
  assert.ok(names.length > 4, 'names were read');
  assert.deepEqual(
    names.filter((name) => !page.includes(`\`✖ ${name}`)),
    [],
  );
});

test('every log event that the page names is logged', () => {
  const events = [...page.matchAll(/log (?:events? )?`([a-z]+(?:-[a-z]+)+)/g)].map(([, name = '']) => name);
  assert.ok(events.length > 8, 'events were read');
  assert.deepEqual(
    events.filter((name) => !sources.some((text) => text.includes(`'${name}'`))),
    [],
  );
});

test('every setting and every option that the page names exists', () => {
  const settings = [...page.matchAll(/`((?:pipeline|inference|sandbox|http|store|retention|model)\.\w+)/g)].map(([, name = '']) => name);
  const configuration = read('docs/configuration.md');
  assert.deepEqual(
    settings.filter((name) => !configuration.includes(`\`${name}`)),
    [],
  );
  const options = toCodeSpans(page)
    .filter((span) => /^millrace |^--/.test(span))
    .flatMap((span) => [...span.matchAll(/(?<![\w-])--[a-z][a-z-]+/g)].map(([option]) => option));
  const known = read('docs/cli.md');
  assert.ok(settings.length > 15 && options.length > 8, 'names were read');
  assert.deepEqual(
    options.filter((option) => !known.includes(option) && !page.includes(`vLLM with \`${option}`) && !ofOtherCommands.includes(option)),
    [],
  );
});

/** Flags of vLLM and Docker. */
const ofOtherCommands = [
  '--security-opt',
  '--enable-tokenizer-info-endpoint',
  '--enable-return-routed-experts',
  '--logprobs-mode',
  '--pids-limit',
];

test('every error code has its row in the troubleshooting page', () => {
  const missing = errorCodes.filter((code) => !page.includes(`\n| \`${code}\` |`));
  assert.deepEqual(missing, []);
});

test('every link inside the page leads to a heading', () => {
  const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
  const targets = [...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, target = '']) => target);
  assert.deepEqual(
    targets.filter((target) => !headings.includes(target)),
    [],
  );
});

function toCodeSpans(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, span = '']) => span);
}

/** The parts of a message between what the page leaves out, and only those that say something. */
function toFragments(message: string): string[] {
  return message
    .replace(/^[✖✔] /, '')
    .split(/…|\bN\b|\bM\b| {2,}/)
    .map((part) => part.replace(/^[\s:,]+|[\s:,]+$/g, ''))
    .filter((part) => part.split(/\s+/).length > 2 && !ofOthers.some((words) => part.includes(words)));
}

/** Each string of a source, as what stands between its interpolations. */
function toStrings(source: string): string[][] {
  const strings = source.match(/\/\/.*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g) ?? [];
  return strings
    .filter((text) => !text.startsWith('//'))
    .map((text) => text.slice(1, -1).split(/\$\{(?:[^{}]|\{[^}]*\})*\}/))
    .map((pieces) =>
      pieces.map((text) => text.replaceAll('\\n', ' ').replaceAll(/\\(.)/g, '$1').trim()).filter((text) => /[a-z]{2}/.test(text)),
    )
    .filter((pieces) => pieces.length > 0);
}

/** A value that a message fills in: a number, a name, an address, a quotation. */
const value = /[\d"/\\.:=[\]_$]|[A-Z]|^[-–+]|^\W*$|^(bubblewrap|bwrap|apptainer|logprobs|vllm,?|sglang,?)$/;

/** Whether one string of the code has all words of the part that are no values, in its pieces. */
function isPrinted(part: string, strings: readonly (readonly string[])[]): boolean {
  return strings.some((pieces) => {
    if (pieces.some((piece) => piece.includes(part))) return true;
    const longestFirst = pieces.toSorted((one, other) => other.length - one.length);
    const rest = longestFirst.reduce(without, part);
    return rest !== part && rest.split(/\s+/).every((word) => value.test(word));
  });
}

/** The text without the piece, of which it may have only the end, where it begins, and the beginning, where it ends. */
function without(text: string, piece: string): string {
  if (text.includes(piece)) return text.replace(piece, ' ');
  if (!text.includes(piece.slice(0, 6)) && !text.includes(piece.slice(-6))) return text; // as almost always
  const words = piece.split(/\s+/);
  for (let kept = words.length; kept > 1; kept -= 1) {
    const [first, last] = [
      words
        .slice(0, kept)
        .join(' ')
        .replace(/[:;,]$/, ''),
      words.slice(-kept).join(' '),
    ];
    if (text.endsWith(first)) return text.slice(0, -first.length);
    if (text.startsWith(last)) return text.slice(last.length);
  }
  return text;
}
