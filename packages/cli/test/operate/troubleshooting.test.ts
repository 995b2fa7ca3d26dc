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
];

test('every message that the page explains is printed by the code', () => {
  const pieces = sources.flatMap(toStaticPieces);
  const messages = (symptoms ?? []).filter((cell) => !cell.startsWith('log ')).flatMap(toCodeSpans);
  const unknown = messages.flatMap((message) => toFragments(message).filter((part) => !isPrinted(part, pieces)));
  assert.ok(messages.length > 40, 'messages were read');
  assert.deepEqual(unknown, []);
});

test('a message that the code no longer prints would be found', () => {
  const pieces = toStaticPieces(['throw new Error(`$', '{host} is in use by $', "{'another'} service`);"].join(''));
  assert.deepEqual(
    ['127.0.0.1:8007 is in use by a service', '127.0.0.1:8007 is taken by a service'].map((part) => isPrinted(part, pieces)),
    [true, false],
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

/** What stands between the interpolations of strings. */
function toStaticPieces(source: string): string[] {
  const strings = source.match(/\/\/.*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g) ?? [];
  return strings
    .filter((text) => !text.startsWith('//'))
    .flatMap((text) => text.slice(1, -1).split(/\$\{(?:[^{}]|\{[^}]*\})*\}/))
    .map((text) => text.replaceAll(/\\(.)/g, '$1').trim())
    .filter((text) => text.split(/\s+/).length > 1 && text.length > 4);
}

/** A part of a string of the code, or around one. */
function isPrinted(part: string, pieces: readonly string[]): boolean {
  return pieces.some((piece) => part.includes(piece) || piece.includes(part));
}
