// Made-up results, as lines that `submit --trajectories` could have written: many rollouts, and one of them, called long, with its tokens.

interface MadeUpResults {
  readonly count: number;
  /** Of the trajectory of `long`. */
  readonly tokens: number;
}

const times = { queued_ms: 5, init_ms: 20, ready_ms: 0, cache_wait_ms: 0, evaluate_wait_ms: 0, evaluate_ms: 40 };
const codes = ['init-failed', 'evaluate-timeout', 'sandbox-died'] as const;

/** The one with tokens is the newest. */
export function* makeResults({ count, tokens }: MadeUpResults): Generator<string> {
  for (let number = 1; number < count; number++) yield JSON.stringify(makeRollout(`rollout-${number}`, number));
  yield JSON.stringify({ ...makeRollout('long', 0), trajectory: makeTrajectory(tokens) });
}

function makeRollout(id: string, number: number) {
  const code = number % 29 === 28 ? codes[number % codes.length] : undefined;
  const reward = code === undefined ? (number % 3) / 2 : null;
  const failure = { code, message: `it failed on step ${number}`, blame: 'task', retryable: false, stage: 'init', attempt: 1 };
  const run_ms = 1000 + (number % 500);
  const result = {
    reward,
    score: {},
    stop_reason: 'completed',
    turns: 1 + (number % 7),
    tokens: { prompt: 300, sampled: 200 + (number % 900), observation: 100 },
    malformed_calls: 0,
    policy_versions: { first: 1 + (number >> 12), last: 1 + (number >> 12) },
    backends: ['gpu-0'],
    timings: { ...times, run_ms, model_ms: run_ms - 100, tool_ms: 80 },
  };
  return {
    id,
    scenario: ['math', 'shell', 'swe'][number % 3],
    group: `task-${number >> 3}`,
    state: code === undefined ? 'done' : 'failed',
    attempt: 1,
    retries: 0,
    losses: 0,
    worker: null,
    reward,
    result: code === undefined ? result : null,
    failure: code === undefined ? null : failure,
    failures: [],
    created_at: new Date(Date.UTC(2026, 0, 1) + number * 1000).toISOString(),
    ended_at: new Date(Date.UTC(2026, 0, 1) + number * 1000 + run_ms).toISOString(),
    metadata: { step: number >> 8 },
  };
}

function makeTrajectory(tokens: number) {
  const turns = 16;
  const each = Math.floor(tokens / turns / 2);
  const ids = (salt: number) => Array.from({ length: each }, (_, index) => 1000 + ((index * 7919 + salt * 104_729) % 60_000));
  const logprobs = Array.from({ length: each }, (_, index) => -((index * 13) % 400) / 100);
  const segments = Array.from({ length: turns }, (_, turn) => [
    { kind: turn === 0 ? 'prompt' : 'observation', turn, text: '', messages: [], token_ids: ids(2 * turn), logprobs: [], mask: 0 },
    { kind: 'sampled', turn: turn + 1, text: '', messages: [], token_ids: ids(2 * turn + 1), logprobs, mask: 1 },
  ]).flat();
  return { rollout_id: 'long', attempt: 1, model: 'made-up', tools: [], segments, sha256: '' };
}
