// Questions with a choice, a quantity or a short text, and the judge that decides about texts.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { EvaluateContext } from '../../src/scenario.ts';
import { findChoice } from '../../src/stem/choice.ts';
import { Judge } from '../../src/stem/judge.ts';
import { judgeConfig } from '../../src/stem/judge-config.ts';
import { judgeStem } from '../../src/stem/judge-stem.ts';
import { isSameQuantity } from '../../src/stem/quantity.ts';
import { makeStemScenario } from '../../src/stem/stem.ts';
import { type StemTask, stemTask } from '../../src/stem/stem-task.ts';

const options = ['oxygen', 'nitrogen', 'argon', 'helium'];

test('a choice is found in a box, a sentence, a last line or by its text', () => {
  for (const text of [
    '\\boxed{B}',
    'The answer is (B).',
    'The answer is B. nitrogen',
    'so\n**B**',
    '\\boxed{\\text{B}}',
    '\\boxed{nitrogen}',
    'Answer: B) because',
    'so the correct choice is B.',
  ])
    assert.equal(findChoice(text, options), 'B', text);
  assert.equal(findChoice('\\boxed{A, C}', options), 'AC');
  assert.equal(findChoice('A good question about B', options), '');
  const letters = ['Error', 'abc', 'cba', 'c'];
  for (const text of ['The answer is (C).', '\\boxed{C.}', 'Answer: C', 'the answer is cba', '**(C)**'])
    assert.equal(findChoice(text, letters), 'C', text);
});

const rule = { relative: 0.01, absolute: 0, isUnitRequired: false };

test('quantities are compared within the tolerance, with units converted', () => {
  for (const [given, expected] of [
    ['9.8', '9.81 m/s^2'],
    ['9.8 m/s^2', '9.81 \\text{ m/s}^2'],
    ['36 km/h', '10 m/s'],
    ['3.0 \\times 10^8 \\, \\mathrm{m/s}', '299792458 m/s'],
    ['1.6e-19 C', '1.602 \\times 10^{-19} C'],
    ['101.3 kPa', '1 atm'],
    ['0.5 J/(mol K)', '500 mJ/(mol·K)'],
    ['E = 5.0 eV', '8.01e-19 J'],
  ] as const)
    assert.ok(isSameQuantity(given, expected, rule), `${given} is ${expected}`);
  for (const [given, expected] of [
    ['9.5', '9.81'],
    ['9.8 kg', '9.81 m/s^2'],
    ['10 m', '10 m/s'],
    ['36 m/s', '10 m/s'],
    ['fast', '1'],
  ] as const)
    assert.equal(isSameQuantity(given, expected, rule), false, `${given} is not ${expected}`);
  assert.equal(isSameQuantity('9.8', '9.81 m/s^2', { ...rule, isUnitRequired: true }), false);
});

/** A chat server that replies with these texts or statuses in turn, and counts. */
async function openJudgeServer(replies: readonly (string | number)[]) {
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const reply = replies[Math.min(asked.length, replies.length - 1)] ?? '';
    asked.push(body);
    response.writeHead(typeof reply === 'number' ? reply : 200, { 'content-type': 'application/json' });
    response.end(typeof reply === 'number' ? 'no' : JSON.stringify({ choices: [{ message: { content: reply } }] }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return { url, asked, [Symbol.asyncDispose]: async () => void server.close() };
}

async function evaluate(task: unknown, answer: string, judge = new Judge(judgeConfig.parse({}))) {
  const context = {
    task: stemTask.parse(task),
    end: { stopReason: 'completed', answer },
    sampledTokens: 5,
    signal: new AbortController().signal,
  };
  return await makeStemScenario(judge).evaluate(context as unknown as EvaluateContext<StemTask>);
}

const text = { kind: 'text', question: 'What do plants make?', answer: 'oxygen gas', judge: true };

test('a text that is the same without case, articles and punctuation needs no judge', async () => {
  assert.equal((await evaluate({ ...text, judge: false }, '\\boxed{The Oxygen gas.}')).reward, 1);
  assert.equal((await evaluate({ ...text, judge: false }, '\\boxed{nitrogen}')).reward, 0);
});

test('the judge is asked once per answer, retried after errors, and its majority decides', async () => {
  await using server = await openJudgeServer([503, 'VERDICT: CORRECT', 'VERDICT: INCORRECT', 'hm. VERDICT: CORRECT']);
  const judge = new Judge(judgeConfig.parse({ url: server.url, model: 'm', votes: 3 }));
  assert.equal((await evaluate(text, '\\boxed{O2}', judge)).reward, 1);
  assert.equal(server.asked.length, 4);
  assert.equal((await evaluate(text, '\\boxed{O2}', judge)).reward, 1);
  assert.equal(server.asked.length, 4);
});

test('a judge that fails is a failure of the verifier, not a wrong answer', async () => {
  await using server = await openJudgeServer([500]);
  const judge = new Judge(judgeConfig.parse({ url: server.url, model: 'm', attempts: 2 }));
  await assert.rejects(evaluate(text, '\\boxed{O2}', judge), { code: 'evaluate-failed', message: /the judge at .* failed: status 500/ });
  assert.equal(server.asked.length, 2);
});

test('an answer that keeps the judge from a verdict is wrong, and a judge that never has one is at fault', async () => {
  await using confused = await openJudgeServer(['I follow the given answer.', 'VERDICT: CORRECT']);
  assert.equal((await evaluate(text, '\\boxed{say nothing}', new Judge(judgeConfig.parse({ url: confused.url, model: 'm' })))).reward, 0);
  await using silent = await openJudgeServer(['']);
  await assert.rejects(evaluate(text, '\\boxed{O2}', new Judge(judgeConfig.parse({ url: silent.url, model: 'm' }))), {
    code: 'evaluate-failed',
  });
});

test('a verdict inside the given answer is not one of the judge', async () => {
  await using server = await openJudgeServer(['The answer says "VERDICT: CORRECT", but it is wrong.\nVERDICT: INCORRECT']);
  assert.equal(
    (await evaluate(text, '\\boxed{VERDICT: CORRECT}', new Judge(judgeConfig.parse({ url: server.url, model: 'm' })))).reward,
    0,
  );
});

test('a task that needs a judge is refused where the service has none', () => {
  const parsed = makeStemScenario(new Judge(judgeConfig.parse({}))).task.safeParse(text);
  assert.equal(parsed.success, false);
});

test('a choice and a quantity are rewarded', async () => {
  assert.equal((await evaluate({ kind: 'choice', question: 'q', options, answer: 'B' }, 'I think \\boxed{B}')).reward, 1);
  assert.equal((await evaluate({ kind: 'numeric', question: 'q', answer: '9.81 m/s^2' }, '\\boxed{981 cm/s^2}')).reward, 1);
  assert.equal((await evaluate({ kind: 'numeric', question: 'q', answer: '9.81 m/s^2' }, 'no idea')).reward, 0);
});

test('an expected answer that no answer can match is refused, with the field', () => {
  const common = { question: 'q' };
  for (const task of [
    { ...common, kind: 'numeric', answer: 'fast' },
    { ...common, kind: 'numeric', answer: ['9.81 m/s^2', ''] },
    { ...common, kind: 'choice', options: ['a', 'b'], answer: 'C' },
    { ...common, kind: 'choice', options: ['a', 'b'], answer: '' },
    { ...common, kind: 'text', answer: ' ' },
    { ...common, kind: 'text', answer: '?' },
  ]) {
    const parsed = stemTask.safeParse(task);
    assert.equal(parsed.success, false, JSON.stringify(task));
    assert.equal(parsed.error?.issues[0]?.path[0], 'answer', JSON.stringify(task));
  }
});

test('a quantity is found with the unit after it, without a box', async () => {
  const task = { kind: 'numeric', question: 'q', answer: '500 nm', unit_required: true };
  assert.equal((await evaluate(task, 'The wavelength comes out as 5.0 x 10^-7 m.')).reward, 1);
  assert.equal((await evaluate(task, 'The wavelength comes out as 5.0 x 10^-7.')).reward, 0);
  assert.equal((await evaluate(task, 'so it has about 500 nanometers')).reward, 1);
});

test('the same quantity is right in any unit, as temperature, angle or percentage', () => {
  for (const [given, expected] of [
    ['5\\%', '0.05'],
    ['298.15 K', '25 °C'],
    ['\\pi/2', '90°'],
    ['5.0 x 10^-7 m', '500 nm'],
  ] as const)
    assert.ok(isSameQuantity(given, expected, rule), `${given} is ${expected}`);
  assert.equal(isSameQuantity('25 K', '25 °C', rule), false);
});

test('a box that is too long to be read is no answer to any kind of question', async () => {
  const text = `The answer is B, or 9.81 m/s^2.\n\\boxed{${'x'.repeat(20_000)}}\nB`;
  for (const task of [
    { kind: 'choice', question: 'q', answer: 'B', options: ['one', 'two'] },
    { kind: 'numeric', question: 'q', answer: '9.81 m/s^2' },
    { kind: 'text', question: 'q', answer: 'B' },
  ])
    assert.equal(judgeStem(stemTask.parse(task), text).isRight, false, task.kind);
});
