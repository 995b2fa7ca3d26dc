// The golden files against their schemas.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { z } from 'zod';
import { makeBinaryGroups, makeGolden } from './golden.ts';

const folder = new URL('golden/', import.meta.url);

for (const [name, { schema, value }] of Object.entries(makeGolden())) {
  test(`golden ${name} is its example, and its schema keeps every field`, () => {
    const golden = JSON.parse(readFileSync(new URL(name, folder), 'utf8'));
    assert.deepEqual(golden, JSON.parse(JSON.stringify(value)), 'run node packages/protocol/test/golden.ts to write it again');
    assert.deepEqual(JSON.parse(JSON.stringify(schema.parse(golden))), golden);
  });

  test(`the examples for the schema of ${name} have every field, including optional ones`, () => {
    const examples = Object.values(makeGolden()).filter((golden) => golden.schema === schema);
    const present = new Set(examples.flatMap((golden) => [...fieldsOf(golden.value)]));
    assert.deepEqual(
      [...fieldsOfSchema(schema)].filter((field) => !present.has(field)),
      [],
    );
  });
}

test('the binary format of the example page of groups is the golden file, byte for byte', () => {
  assert.ok(makeBinaryGroups().equals(readFileSync(new URL('group-page.mrg', folder))));
});

test('every golden file has an example', () => {
  const known = [...Object.keys(makeGolden()), 'trajectory.mrt', 'branched-trajectory.mrt', 'group-page.mrg'];
  assert.deepEqual(readdirSync(folder).sort(), known.sort());
});

/** Paths of all fields, where `[]` is any item of a list. */
function* fieldsOf(value: unknown, path = ''): Generator<string> {
  if (Array.isArray(value)) for (const item of value) yield* fieldsOf(item, `${path}[]`);
  else if (typeof value === 'object' && value !== null)
    for (const [key, held] of Object.entries(value)) {
      yield `${path}.${key}`;
      yield* fieldsOf(held, `${path}.${key}`);
    }
}

/** A schema with its own examples is checked there. */
function* fieldsOfSchema(schema: unknown, path = ''): Generator<string> {
  if (path !== '' && Object.values(makeGolden()).some((golden) => golden.schema === schema)) return;
  if (schema instanceof z.ZodArray) yield* fieldsOfSchema(schema.element, `${path}[]`);
  else if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) yield* fieldsOfSchema(schema.unwrap(), path);
  else if (schema instanceof z.ZodObject)
    for (const [key, held] of Object.entries(schema.shape)) {
      yield `${path}.${key}`;
      yield* fieldsOfSchema(held, `${path}.${key}`);
    }
}
