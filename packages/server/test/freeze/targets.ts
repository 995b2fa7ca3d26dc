// What reads the texts of agents, by name: what runs on the event loop of a worker, and what runs in a grader's thread.

import { runNow } from '@millrace/base/pace';
import { JinjaTemplate, parseLongTurn, toolParsers } from '@millrace/model';
import {
  compareRuns,
  cutText,
  filesOf,
  findProgram,
  findTestFault,
  insertAfter,
  judgeMath,
  judgeStem,
  sweRowKindOf as kindOf,
  lintCheck,
  logParserNames,
  logParserOf,
  renderLines,
  replaceOnce,
  stemTask,
  toCodeTask,
  toSweTask as toTask,
} from '@millrace/scenarios';
import { findShapeFault } from '../../src/http/request/json-shape.ts';
import { parseAction } from '../../src/tool-server/parse-action.ts';

export interface FreezeTarget {
  /** What CPU time a text of one megabyte may take, in milliseconds. A thread has more, and is ended when that is used up. */
  readonly mostMs: number;
  run(text: string): unknown;
}

const loopMs = 20;
const threadMs = 1000;
/** For what a task's author wrote. */
const rowMs = 5000;

const tools = [
  { name: 'bash', description: '', parameters: { type: 'object', properties: { command: { type: 'string' }, n: { type: 'integer' } } } },
];
/** What chat templates do with a text of the policy; they see only placeholders for the texts of users and tools. */
const written: Readonly<Record<string, string>> = {
  trimmed: "trim }}{{ message.content.startswith('<t') }}{{ message.content.rstrip() | length",
  split: "length }}{{ message.content.split('</think>')[-1].lstrip('\\n') }}{{ '<think>' in message.content",
  json: 'tojson',
  replaced: "replace('a', 'b')",
  cut: 'length }}{{ message.content[:9] }}{{ message.content[9:]',
};
const toTemplate = (write: string) => new JinjaTemplate(`{% for message in messages %}{{ message.content | ${write} }}{% endfor %}`);
const quantity = stemTask.parse({ kind: 'numeric', question: 'q', answer: '9.81 m/s^2' });
const choice = stemTask.parse({ kind: 'choice', question: 'q', answer: 'AC', options: ['one', 'two', 'three'] });
const words = stemTask.parse({ kind: 'text', question: 'q', answer: 'the mitochondrion' });
const bytes = (text: string) => new TextEncoder().encode(text);

/** The body of a request whose shape is not refused. */
function readBody(text: string): unknown {
  const body = bytes(text);
  return runNow(findShapeFault(body)) === undefined ? JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) : undefined;
}

function readSweRow(row: Readonly<Record<string, unknown>>): unknown {
  const kind = kindOf(row);
  return kind && toTask(row, kind);
}

export const targets: Readonly<Record<string, FreezeTarget>> = {
  ...Object.fromEntries(
    toolParsers.flatMap(({ name, parse }) => [
      [`tool-calls ${name}`, { mostMs: loopMs, run: (text: string) => parse(text.slice(0, 8 << 10), tools) }],
      [`long turn ${name}`, { mostMs: threadMs, run: (text: string) => parseLongTurn(name, text, tools) }],
    ]),
  ),
  'editor old_str': { mostMs: loopMs, run: (text) => replaceOnce(text, text.slice(text.length / 2), 'x') },
  'editor insert': { mostMs: loopMs, run: (text) => insertAfter(text, 1, text) },
  'editor view': { mostMs: loopMs, run: (text) => renderLines(text, 1, 50) },
  'tool output': { mostMs: loopMs, run: (text) => cutText(text) },
  'tool server action': { mostMs: loopMs, run: parseAction },
  ...Object.fromEntries(
    Object.entries(written).map(([name, write]) => {
      const template = toTemplate(write);
      const run = (text: string) => template.render({ messages: [{ role: 'assistant', content: text.toWellFormed() }] });
      return [`jinja ${name}`, { mostMs: loopMs, run }];
    }),
  ),
  'request shape': {
    mostMs: 4 * loopMs, // in slices of a quarter of a megabyte
    run: (text) => runNow(findShapeFault(bytes(text))),
  },
  'request body': { mostMs: 2 * loopMs, run: readBody }, // in two turns of the loop
  'files of a patch': { mostMs: loopMs, run: filesOf },
  ...Object.fromEntries(
    logParserNames.map((name) => [`log ${name}`, { mostMs: threadMs, run: (text: string) => logParserOf(name)(text) }]),
  ),
  'find program': { mostMs: threadMs, run: (text) => findProgram(text, 'python') },
  'output lines': {
    mostMs: threadMs,
    run: (text) => compareRuns([{ given: bytes(`${text} `), expected: [text] }], { by: 'lines', tolerance: 0 }),
  },
  'output words': {
    mostMs: threadMs,
    run: (text) => compareRuns([{ given: bytes(`${text}1`), expected: [text] }], { by: 'words', tolerance: 0.1 }),
  },
  'output json': {
    mostMs: threadMs,
    run: (text) => compareRuns([{ given: bytes(text), expected: [`${text} `] }], { by: 'json', tolerance: 0 }),
  },
  math: { mostMs: threadMs, run: (text) => judgeMath({ answer: '\\frac{1}{2}' }, text) },
  'math box': { mostMs: threadMs, run: (text) => judgeMath({ answer: '\\{1,2\\}' }, `\\boxed{${text}}`) },
  'stem numeric': { mostMs: threadMs, run: (text) => judgeStem(quantity, text) },
  'stem choice': { mostMs: threadMs, run: (text) => judgeStem(choice, text) },
  'stem expected quantity': { mostMs: loopMs, run: (text) => stemTask.safeParse({ kind: 'numeric', question: 'q', answer: text }) },
  'stem expected text': { mostMs: loopMs, run: (text) => stemTask.safeParse({ kind: 'text', question: 'q', answer: text }) },
  'check script': { mostMs: threadMs, run: (text) => lintCheck(text.slice(0, 32 << 10)) },
  'code row apps': { mostMs: rowMs, run: (text) => toCodeTask({ question: 'q', input_output: text }) },
  'code row verl': { mostMs: rowMs, run: (text) => toCodeTask({ prompt: text, reward_model: { ground_truth: `[${text}]` } }) },
  'code row assertions': { mostMs: rowMs, run: (text) => toCodeTask({ prompt: 'q', entry_point: 'f', test: text }) },
  'code function tests': { mostMs: rowMs, run: (text) => findTestFault([{ input: `[${text}]`, output: text }]) },
  'swe row': { mostMs: rowMs, run: (text) => readSweRow({ instance_id: 'a__b-1', repo: 'a/b', patch: text, FAIL_TO_PASS: text }) },
  'swe row nemotron': { mostMs: rowMs, run: (text) => readSweRow({ instance_dict: text }) },
  'stem text': { mostMs: threadMs, run: (text) => judgeStem(words, text) },
};
