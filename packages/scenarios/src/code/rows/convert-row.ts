// Recognises a row of a data set by its fields, and makes a task of it.

import { z } from 'zod';
import { questionOf, type Row } from '../../row.ts';
import { fromApps } from './apps.ts';
import { fromHumanEval, fromKodCode, fromMbpp } from './assertions.ts';
import { fromCodeContests, fromCodeforces } from './codeforces.ts';
import { fromLiveCodeBench } from './livecodebench.ts';
import { parseField } from './row.ts';

/** The options of a task that may stand next to the fields of a row. */
const options = [
  'credit',
  'compare',
  'float_tolerance',
  'tools',
  'submit',
  'image',
  'shaping',
  'time_limit_s',
  'memory_limit_mib',
  'solution',
] as const;

/** Undefined if it is no row of a known data set, or already a task. Throws an Error that names the field. */
export function toCodeTask(row: Row): Row | undefined {
  const convert = findConverter(row);
  if (convert === undefined) return undefined;
  const own = Object.fromEntries(options.filter((name) => name in row).map((name) => [name, row[name]]));
  return { ...convert(row), ...own };
}

export function findConverter(row: Row): ((row: Row) => Row) | undefined {
  return 'tests' in row ? undefined : recognise(row);
}

function recognise(row: Row): ((row: Row) => Row) | undefined {
  if ('entry_point' in row && 'test' in row) return fromHumanEval;
  if ('test_list' in row || isAssertions(row.test_cases)) return fromMbpp;
  if (typeof row.test === 'string' && row.test.includes('solution import')) return fromKodCode;
  if ('public_test_cases' in row || 'private_test_cases' in row) return fromLiveCodeBench;
  if ('input_output' in row) return fromApps;
  if ('official_tests' in row) return fromCodeforces;
  if ('private_tests' in row || 'generated_tests' in row) return fromCodeContests;
  return 'reward_model' in row ? fromVerl : undefined;
}

const isAssertions = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string' && /^\s*assert\b/.test(one));

const rewardModel = z.object({ ground_truth: z.unknown() });

const call = z.array(z.object({ fn_name: z.string().min(1), input: z.unknown(), output: z.unknown() })).min(1);
const named = z.object({ metadata: z.object({ func_name: z.string() }) });

/** Rows of verl: the tests are in `reward_model.ground_truth`, in the form of APPS, of LiveCodeBench or of PrimeIntellect, or they are assertions. */
function fromVerl(row: Row): Row {
  const truth = parseField(rewardModel.parse(row.reward_model), 'ground_truth');
  const question = questionOf(row);
  if (!Array.isArray(truth)) return fromApps({ question, input_output: truth });
  if (isAssertions(truth)) return fromMbpp({ question, test_list: truth });
  const calls = call.safeParse(truth).data;
  if (calls) {
    const [inputs, outputs] = [calls.map(({ input }) => input), calls.map(({ output }) => output)];
    return fromApps({ question, input_output: { inputs, outputs, fn_name: calls[0]?.fn_name } });
  }
  const [name] = truth.flatMap((one) => named.safeParse(one).data?.metadata.func_name ?? []);
  return fromLiveCodeBench({ question_content: question, public_test_cases: truth, metadata: { func_name: name } });
}
