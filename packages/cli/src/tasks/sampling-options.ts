// The options of `submit` and `batch start` that set how tokens are sampled and what limits a rollout has.

import { definedOf, describeIssues, limits, type Schema, type SubmissionInput, sampling } from '@millrace/protocol';
import { type Arguments, type Option, UsageError } from '../command/command.ts';

export const samplingOptions = {
  'max-tokens': { type: 'string', value: 'N', describe: 'Most tokens that are sampled in one turn.' },
  temperature: { type: 'string', value: 'T', describe: 'Sampling temperature; 0 is greedy.' },
  sampling: {
    type: 'string',
    value: 'KEY=VALUE',
    multiple: true,
    describe: `Any sampling field: ${Object.keys(sampling.shape).join(', ')}.`,
  },
  limits: {
    type: 'string',
    value: 'KEY=VALUE',
    multiple: true,
    describe: `Any limit: ${Object.keys(limits.shape).join(', ')}.`,
  },
} as const satisfies Record<string, Option>;

export type SamplingFields = Pick<SubmissionInput, 'sampling' | 'limits'>;

/** Only what the caller set: the service fills in the defaults. */
export function toSamplingFields(args: Arguments): SamplingFields {
  const sampled = {
    ...readPairs(args, 'sampling'),
    ...definedOf({ max_tokens: args.count('max-tokens', 1), temperature: args.number('temperature', 0) }),
  };
  const limited = readPairs(args, 'limits');
  check('sampling', sampling, sampled);
  check('limits', limits, limited);
  return {
    ...(Object.keys(sampled).length > 0 ? { sampling: sampled } : {}),
    ...(Object.keys(limited).length > 0 ? { limits: limited } : {}),
  };
}

const exampleOf: Readonly<Record<string, string>> = { sampling: 'top_p=0.95', limits: 'max_turns=20' };

/** `key=value` pairs; a value is JSON where it can be read as JSON, and text otherwise. */
export function readPairs(args: Arguments, option: string): Record<string, unknown> {
  const pairs = args.list(option).map((pair): [string, unknown] => {
    const [, key, value] = /^([\w.]+)=(.*)$/s.exec(pair) ?? [];
    if (key === undefined || value === undefined)
      throw new UsageError(`--${option} ${pair} is not key=value, such as ${exampleOf[option] ?? 'n=4'}`);
    return [key, toValue(value)];
  });
  return Object.fromEntries(pairs);
}

function toValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // not JSON: plain text
  }
}

function check(option: string, schema: Schema, value: unknown): void {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new UsageError(`--${option} ${describeIssues(parsed.error.issues, { value, schema })}`);
}
