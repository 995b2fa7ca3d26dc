// Rows of LiveCodeBench: `question_content`, `public_test_cases` and `private_test_cases`, and the name of the function in `metadata`.

import { inflateSync } from 'node:zlib';
import { definedOf } from '@millrace/protocol';
import { z } from 'zod';
import type { Row } from '../../row.ts';
import { parseExact } from '../output/exact-json.ts';
import { parseField, type RowTest } from './row.ts';

const testCases = z.array(z.object({ input: z.string(), output: z.string(), testtype: z.string().default('stdin') }));
const metadata = z.object({ func_name: z.string().nullish() });
const maxTestBytes = 512 << 20;

export function fromLiveCodeBench(row: Row): Row {
  const cases = [...readCases(row.public_test_cases, 'public_test_cases'), ...readCases(row.private_test_cases, 'private_test_cases')];
  const name = metadata.safeParse(parseField(row, 'metadata')).data?.func_name ?? undefined;
  const isFunction = cases.some(({ testtype }) => testtype === 'functional');
  const title = typeof row.question_title === 'string' && row.question_title !== '' ? `${row.question_title}\n\n` : '';
  return definedOf({
    question: `${title}${String(row.question_content ?? '')}`,
    starter_code: typeof row.starter_code === 'string' ? row.starter_code : undefined,
    function_name: isFunction ? name : undefined,
    tests: cases.map(({ input, output }): RowTest => (isFunction ? { input: toArguments(input), output } : { input, output })),
  });
}

/** One argument per line. */
const toArguments = (input: string): string =>
  `[${input
    .split('\n')
    .filter((line) => line.trim() !== '')
    .join(',')}]`;

function readCases(value: unknown, field: string): z.infer<typeof testCases> {
  if (value === undefined || value === null || value === '') return [];
  if (typeof value !== 'string') return testCases.parse(value);
  const text = value.trimStart().startsWith('[') ? value : decode(value, field);
  return testCases.parse(parseExact(text));
}

/** Base64 of zlib of a pickled string. */
function decode(value: string, field: string): string {
  try {
    return unpickleText(inflateSync(Buffer.from(value, 'base64'), { maxOutputLength: maxTestBytes }));
  } catch (cause) {
    throw new Error(`${field} is neither JSON nor a compressed pickle of JSON: ${value.slice(0, 40)}`, { cause });
  }
}

/** Reads the one string of a pickle, and runs nothing. */
function unpickleText(data: Buffer): string {
  let at = 0;
  for (;;) {
    const code = data[at];
    at += 1;
    if (code === 0x80) at += 1;
    else if (code === 0x95) at += 8;
    else if (code === 0x8c) return data.toString('utf8', at + 1, at + 1 + data.readUInt8(at));
    else if (code === 0x58) return data.toString('utf8', at + 4, at + 4 + data.readUInt32LE(at));
    else if (code === 0x8d) return data.toString('utf8', at + 8, at + 8 + Number(data.readBigUInt64LE(at)));
    else throw new Error(`the pickle does not hold a string (code ${code})`);
  }
}
