// What is wrong in a value, field by field.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeIssues } from '@millrace/protocol';
import { z } from 'zod';

const task = z.strictObject({
  question: z.string(),
  answer: z.union([z.string(), z.number()]),
  level: z.enum(['easy', 'hard']).optional(),
  limits: z.strictObject({ max_turns: z.int().default(5) }).prefault({}),
  tests: z.array(z.strictObject({ command: z.string() })).default([]),
});
const describe = (value: unknown, schema: z.ZodType = task) => {
  const parsed = schema.safeParse(value);
  return parsed.success ? '' : describeIssues(parsed.error.issues, { value, schema });
};

test('a field that is missing is called missing, whatever its type', () => {
  assert.equal(describe({}), 'question: is missing; answer: is missing');
  assert.equal(describe({ question: 1, answer: '' }), 'question: Invalid input: expected string, received number');
});

test('an unknown field comes with the one that was probably meant, at any depth and behind any wrapper', () => {
  const good = { question: '', answer: 1 };
  assert.equal(describe({ question: '', anwser: 1 }), 'answer: is missing; anwser: unknown field; did you mean answer?');
  assert.equal(describe({ ...good, limits: { max_turn: 1 } }), 'limits.max_turn: unknown field; did you mean max_turns?');
  assert.equal(describe({ ...good, tests: [{ command: '', comand: 1 }] }), 'tests.0.comand: unknown field; did you mean command?');
  assert.equal(describe({ ...good, colour: 1 }), 'colour: unknown field');
  const wrapped = task.optional().transform((value) => value);
  assert.equal(describe({ ...good, leve: 1 }, wrapped), 'leve: unknown field; did you mean level?');
});

test('an object is called an object, as JSON calls it', () => {
  assert.equal(describe('1 + 1', z.record(z.string(), z.unknown())), 'Invalid input: expected object, received string');
});

test('a union says which types it takes', () => {
  assert.equal(describe({ question: '', answer: {} }), 'answer: Invalid input: expected string or number');
});

test('a schema of another library suggests nothing', () => {
  const issues = [{ code: 'unrecognized_keys', path: [], keys: ['a'], message: '' }];
  assert.equal(describeIssues(issues, { value: {}, schema: { fields: ['b'] } }), 'a: unknown field');
});
