// Rows of APPS and TACO: `question`, `input_output` with inputs, outputs and perhaps fn_name, `starter_code`, and limits as text.

import { definedOf } from '@millrace/protocol';
import { z } from 'zod';
import type { Row } from '../../row.ts';
import { renderExact } from '../output/exact-json.ts';
import { mebibytesOf, parseField, type RowTest, secondsOf, textOf } from './row.ts';

const inputOutput = z.object({ inputs: z.array(z.unknown()), outputs: z.array(z.unknown()), fn_name: z.string().nullish() });

/** Its checker compares floats as numpy's `allclose` does. */
const floatTolerance = 1e-5;

export function fromApps(row: Row): Row {
  const { inputs, outputs, fn_name } = inputOutput.parse(parseField(row, 'input_output'));
  if (inputs.length !== outputs.length) throw new Error(`input_output has ${inputs.length} inputs and ${outputs.length} outputs`);
  const toTest = fn_name
    ? toFunctionTest
    : (input: unknown, output: unknown): RowTest => ({ input: textOf(input), output: textOf(output) });
  return definedOf({
    question: row.question,
    starter_code: typeof row.starter_code === 'string' ? row.starter_code : undefined,
    function_name: fn_name ?? undefined,
    tests: inputs.map((input, at) => toTest(input, outputs[at])),
    time_limit_s: secondsOf(row.time_limit),
    memory_limit_mib: mebibytesOf(row.memory_limit),
    float_tolerance: floatTolerance,
  });
}

/** The expected value may be wrapped in a list of one. */
function toFunctionTest(input: unknown, output: unknown): RowTest {
  const args = Array.isArray(input) ? input : [input];
  const inner = Array.isArray(output) && output.length === 1 ? { alternatives: [renderExact(output[0])] } : {};
  return { input: renderExact(args), output: renderExact(output), ...inner };
}
