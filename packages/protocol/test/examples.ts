// A trajectory and a rollout that use every field; the golden files show them on the wire.

import { backendId, type RolloutView, rolloutId, rolloutView, sampling, type Trajectory } from '@millrace/protocol';

export function makeTrajectory(): Trajectory {
  const call = { id: 'call-1', name: 'bash', arguments: { command: 'ls "ä" ☃' } };
  const none = new Float32Array();
  return {
    rolloutId: rolloutId.parse('r-1'),
    attempt: 2,
    model: 'tiny',
    tools: [{ name: 'bash', description: 'Runs a command.', parameters: { type: 'object', properties: { command: { type: 'string' } } } }],
    provenances: [
      {
        engine: 'vllm',
        engine_version: '0.32.0',
        dialect: 'vllm',
        logprobs_mode: 'processed',
        sampling: sampling.parse({
          temperature: 0.5,
          seed: 7,
          stop: ['</search>'],
          stop_token_ids: [13],
          include_stop_str_in_output: true,
          min_tokens: 2,
          logit_bias: { '42': -1.5 },
          structured_outputs: { choice: ['yes', 'no'] },
        }),
        tokenizer_sha256: 'a'.repeat(64),
        template_sha256: 'b'.repeat(64),
        engine_model: 'tiny',
        generation: 2,
        logprobs_without: [],
        date: '2026-01-02T03:04:05.678Z',
      },
    ],
    segments: [
      {
        kind: 'prompt',
        turn: 0,
        text: 'count the files',
        messages: [{ role: 'user', content: 'count the files' }],
        tokenIds: Int32Array.of(151_644, 872, 198),
        logprobs: none,
      },
      {
        kind: 'sampled',
        turn: 1,
        text: 'let me look',
        messages: [{ role: 'assistant', content: 'let me look', reasoning: 'I do not know yet.', tool_calls: [call] }],
        finish_reason: 'length',
        backend: backendId.parse('10.0.0.1:8000'),
        policy_versions: { first: 3, last: 4 },
        adapter: 'step-4',
        provenance: 0,
        retries: 1,
        tokenIds: Int32Array.of(1, 2_147_483_647),
        logprobs: Float32Array.of(-0.1, -1.5),
      },
      { kind: 'inserted', turn: 1, text: '<|im_end|>', messages: [], tokenIds: Int32Array.of(151_645), logprobs: none },
      {
        kind: 'observation',
        turn: 1,
        text: '3',
        messages: [{ role: 'tool', content: '3', tool_call_id: 'call-1', name: 'bash' }],
        tokenIds: Int32Array.of(18, 0),
        logprobs: none,
      },
      {
        kind: 'sampled',
        turn: 2,
        text: '',
        messages: [],
        finish_reason: 'stop',
        stopped_by: 13,
        tokenIds: new Int32Array(),
        logprobs: none,
      },
    ],
  };
}

/** A history that was rewritten after two turns, from a model with experts. */
export function makeBranchedTrajectory(): Trajectory {
  const { segments, ...head } = makeTrajectory();
  const none = new Float32Array();
  return {
    ...head,
    segments: [
      ...segments,
      {
        kind: 'prompt',
        turn: 2,
        text: 'go on',
        messages: [{ role: 'user', content: 'go on' }],
        branch: 1,
        tokenIds: Int32Array.of(5, 6),
        logprobs: none,
      },
      {
        kind: 'sampled',
        turn: 3,
        text: 'done',
        messages: [{ role: 'assistant', content: 'done' }],
        finish_reason: 'stop',
        stopped_by: '</search>',
        branch: 1,
        tokenIds: Int32Array.of(7, 8),
        logprobs: Float32Array.of(-0.25, -0.5),
        routedExperts: { from: 0, shape: [1, 2], ids: Uint8Array.of(0, 255, 1, 2, 3, 4) },
      },
      {
        kind: 'sampled',
        turn: 4,
        text: '.',
        messages: [{ role: 'assistant', content: '.' }],
        finish_reason: 'stop',
        branch: 1,
        tokenIds: Int32Array.of(9),
        logprobs: Float32Array.of(-2),
        routedExperts: { from: 3, shape: [2], ids: Uint16Array.of(256, 1) },
        samplingMask: { lengths: Int32Array.of(3), tokenIds: Int32Array.of(9, 151_644, 11) },
      },
    ],
  };
}

export function makeRolloutView(): RolloutView {
  const failure = { code: 'sandbox-died', message: 'it is gone', blame: 'sandbox', retryable: true, stage: 'run', attempt: 1 };
  return rolloutView.parse({
    id: 'r-1',
    scenario: 'math',
    group: 'g-1',
    state: 'done',
    attempt: 2,
    retries: 1,
    losses: 0,
    worker: 'w-1',
    reward: 0.5,
    result: {
      reward: 0.5,
      score: { given: '42' },
      stop_reason: 'completed',
      turns: 2,
      tokens: { prompt: 3, sampled: 2, observation: 3 },
      malformed_calls: 0,
      policy_versions: { first: 3, last: 4 },
      backends: ['10.0.0.1:8000'],
      timings: {
        queued_ms: 12.5,
        init_ms: 100,
        ready_ms: 0,
        run_ms: 2000,
        cache_wait_ms: 300,
        evaluate_wait_ms: 1,
        evaluate_ms: 50,
        model_ms: 1800,
        tool_ms: 150,
      },
      trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
      continued: { times: 2, turn: 1, turns_again: 0 },
    },
    failure: null,
    failures: [failure],
    created_at: '2026-01-02T03:04:05.678Z',
    ended_at: '2026-01-02T03:04:08.000Z',
    metadata: { step: 7 },
    fork: { rollout: 'r-0', turn: 4 },
  });
}
