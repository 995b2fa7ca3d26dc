// ProRL Agent's instances and sampling parameters under our names. Both are read as leniently as the original reads them: numbers may be
// text, lists of messages may be JSON, and what is unknown is ignored.

import type { ProcessRequest } from '@millrace/protocol';
import { toColumns } from '@millrace/scenarios';

type Params = Readonly<Record<string, unknown>>;

/** Its default, where ours is 50. */
const defaultIterations = 2;
/** How many equal turns its loop detector allows. */
const strictRepeats = 4;

/** Unchecked; absent where the caller gave none. */
export function toSettings(
  params: ProcessRequest['sampling_params'],
  { timeoutS }: { readonly timeoutS: number },
): { readonly sampling: Params; readonly limits: Params } {
  const read = (name: string) => toNumber(params[name]);
  const context = read('max_model_len');
  // With tokens, the original gives each turn all the room that is left.
  const maxTokens = isTrue(params.token_level_generation) ? (context ?? read('max_output_tokens')) : read('max_output_tokens');
  const sampling = {
    temperature: read('temperature'),
    top_p: read('top_p'),
    top_k: unlessNegative(read('top_k')),
    min_p: read('min_p'),
    repetition_penalty: read('repetition_penalty'),
    presence_penalty: read('presence_penalty'),
    frequency_penalty: read('frequency_penalty'),
    seed: unlessNegative(read('seed')),
    max_tokens: maxTokens,
  };
  const limits = {
    max_turns: read('max_iterations') ?? defaultIterations,
    max_context_tokens: context,
    max_repeated_calls: isTrue(params.strict_loop_detector) ? strictRepeats : undefined,
    init_timeout_s: timeoutS,
    run_timeout_s: timeoutS,
    evaluate_timeout_s: timeoutS,
  };
  return { sampling: dropAbsent(sampling), limits: dropAbsent(limits) };
}

/** The instance with its prompt and reward model as values, where the data set holds them as JSON. */
export function parseInstance(instance: ProcessRequest['instance']): ProcessRequest['instance'] {
  const parsed = Object.entries(toColumns(instance)).map(([name, value]) => [name, jsonFields.has(name) ? parseJson(value) : value]);
  return Object.fromEntries(parsed);
}

const jsonFields: ReadonlySet<string> = new Set(['prompt', 'reward_model', 'extra_info']);

/** A prompt that is plain text stays text. */
function parseJson(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value; // text that starts like JSON
  }
}

function toNumber(value: unknown): unknown {
  if (typeof value !== 'string') return value ?? undefined;
  const text = value.trim();
  if (text === '' || text === 'None' || text === 'null') return undefined;
  return Number.isNaN(Number(text)) ? value : Number(text);
}

/** Its clients write -1 for none. */
function unlessNegative(value: unknown): unknown {
  return typeof value === 'number' && value < 0 ? undefined : value;
}

function isTrue(value: unknown): boolean {
  return value === true || (typeof value === 'string' && value.toLowerCase() === 'true');
}

function dropAbsent(values: Params): Params {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}
