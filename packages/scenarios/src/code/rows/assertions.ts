// Rows whose tests are Python assertions: HumanEval and HumanEval+, MBPP and MBPP+, KodCode, LeetCodeDataset and AceCode. What such tests do
// beyond calling functions with plain values is refused: it needs one interpreter for the tests and the program.

import { definedOf } from '@millrace/protocol';
import { z } from 'zod';
import type { Row } from '../../row.ts';

const texts = z.array(z.string());
const text = (row: Row, ...names: readonly string[]): string | undefined =>
  names.map((name) => row[name]).find((value): value is string => typeof value === 'string' && value.trim() !== '');
const joined = (...parts: readonly (string | undefined)[]): string =>
  parts.filter((part) => part !== undefined && part !== '').join('\n\n');

/** `def check(candidate)` in `test`, and the name of the function in `entry_point`. */
export function fromHumanEval(row: Row): Row {
  const [prompt = '', test = '', name = ''] = [text(row, 'prompt'), text(row, 'test'), text(row, 'entry_point')];
  refuseUnfit('test', test);
  if (!/^def check\(/m.test(test)) throw new Error('test has no function check(candidate)');
  const body = text(row, 'canonical_solution');
  const isMethod = name.startsWith('Solution().');
  return definedOf({
    question: text(row, 'query', 'problem_description', 'question') ?? 'Complete this function.',
    starter_code: isMethod ? text(row, 'starter_code') : prompt,
    solution: text(row, 'completion') ?? (body === undefined ? undefined : `${prompt}${body}`),
    test_code: { functions: [name], setup: joined(prompt, test), cases: ['check(candidate)'] },
  });
}

/** Lists of assertions; MBPP+ has one script more. The first assertion is shown, since the question does not tell the name of the function. */
export function fromMbpp(row: Row): Row {
  const asserts = [row.test_list, row.challenge_test_list, row.test_cases].flatMap((list) => texts.safeParse(list).data ?? []);
  const test = text(row, 'test');
  const solution = text(row, 'code', 'solution');
  const all = joined(...asserts, test);
  refuseUnfit(test === undefined ? 'test_list' : 'test', all);
  const [shown] = asserts;
  return definedOf({
    question: joined(text(row, 'text', 'prompt', 'question'), shown === undefined ? undefined : `For example:\n${shown}`),
    solution,
    test_code: {
      functions: calledOf(all, solution),
      setup: joined(...(texts.safeParse(row.test_imports).data ?? []), text(row, 'test_setup_code')),
      cases: test === undefined ? asserts : [...asserts, test],
    },
  });
}

const declaration = z.array(z.object({ function_name: z.string().optional(), function_declaration: z.string().optional() }));

/** Functions named `test_…` in `test`, which import from `solution`. */
export function fromKodCode(row: Row): Row {
  const [test = '', solution] = [text(row, 'test'), text(row, 'solution')];
  refuseUnfit('test', test);
  const info = declaration.safeParse(row.test_info).data ?? [];
  const imported = partsAfter(test, /^from solution import /m).flatMap((part) =>
    namesOf(part.startsWith('(') ? inBrackets(part) : (part.split('\n', 1)[0] ?? '')),
  );
  const functions = [...new Set([...imported.filter((name) => name !== '*'), ...info.flatMap((one) => one.function_name ?? [])])];
  refuseClasses(functions, solution);
  const isGiven = test.includes('parametrize');
  const cases = partsAfter(test, /^def (?=test\w*\()/m).map((part) => {
    const name = part.slice(0, part.indexOf('('));
    if (inBrackets(part).trim() !== '' && !isGiven) throw new Error(`test: ${name} needs a fixture of pytest, which is not supported`);
    return `${name}()`;
  });
  if (cases.length === 0) throw new Error('test has no function whose name starts with test_');
  return definedOf({
    question: text(row, 'question'),
    starter_code: joined(...info.map((one) => one.function_declaration)) || undefined,
    solution,
    test_code: { functions, setup: test, cases },
  });
}

/** The texts after each mark, up to the next one: reading each to its end is linear. */
const partsAfter = (code: string, mark: RegExp): string[] => code.split(mark).slice(1);
const inBrackets = (part: string): string => part.slice(part.indexOf('(') + 1, part.indexOf(')'));

const namesOf = (list: string): string[] =>
  list
    .replace(/#.*/g, '')
    .split(',')
    .flatMap((one) => /^\s*([\w*]+)/.exec(one)?.[1] ?? []);

const builtIn = new Set(
  'abs all any bool dict enumerate filter float frozenset int isclose isinstance len list map max min not range repr reversed round set sorted str sum tuple type zip'.split(
    ' ',
  ),
);

/** The functions of the solution that the assertions call; without a solution, those that they call and Python does not have. */
function calledOf(asserts: string, solution: string | undefined): string[] {
  const words = [...asserts.matchAll(/([\w.]+)(\s*\()?/g)].flatMap(([, word = '', bracket]) => (bracket === undefined ? [] : [word]));
  const called = new Set(words.filter((word) => /^[A-Za-z_]\w*$/.test(word)));
  if (solution === undefined) {
    const own = new Set([...asserts.matchAll(/^def (\w+)/gm)].map(([, name = '']) => name));
    const [first] = [...called].filter((name) => !builtIn.has(name) && !own.has(name) && name !== 'assert');
    return first === undefined ? [] : [first];
  }
  refuseClasses([...called], solution);
  return [...new Set([...solution.matchAll(/^def (\w+)/gm)].map(([, name = '']) => name))].filter((name) => called.has(name));
}

function refuseClasses(names: readonly string[], solution = ''): void {
  const found = [...solution.matchAll(/^class (\w+)/gm)].find(([, name = '']) => name !== 'Solution' && names.includes(name));
  if (found) throw new Error(`the tests use the class ${found[1]} of the program: only functions with plain values can be tested`);
}

const unfit =
  /\b(unittest|capsys|capfd|monkeypatch|tmp_path|tmpdir|mocker|subprocess|pytest\.fixture|ListNode|TreeNode|list_node|tree_node)\b/;

function refuseUnfit(field: string, code: string): void {
  const lines = code.split('\n');
  const at = lines.findIndex((line) => line.length < 10_000 && unfit.test(line));
  if (at >= 0)
    throw new Error(
      `${field}, line ${at + 1}: ${unfit.exec(lines[at] ?? '')?.[1]} is not supported: the tests and the program have no interpreter in common, so only functions with plain values can be tested`,
    );
}
