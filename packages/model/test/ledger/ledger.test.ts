// The ledger joins ids and nothing else: a returned buffer never changes, and a refusal leaves no trace.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backendId } from '@millrace/protocol';
import { makeRandom } from '@millrace/testkit/plain';
import { Ledger, type Sampled } from '../../src/ledger/ledger.ts';

function makeSampled(tokenIds: ArrayLike<number>, changes: Partial<Sampled> = {}): Sampled {
  return {
    tokenIds,
    logprobs: Array.from(tokenIds, () => -0.5),
    text: 'said',
    messages: [{ role: 'assistant', content: 'said' }],
    finishReason: 'stop',
    backend: backendId.parse('b1'),
    policyVersions: { first: 1, last: 2 },
    retries: 0,
    ...changes,
  };
}

function begin(tokenIds: ArrayLike<number> = [1, 2]): Ledger {
  const ledger = new Ledger();
  ledger.appendPrompt({ tokenIds, text: 'asked', messages: [] });
  return ledger;
}

test('the prompt on the wire is the ids of all segments, in decimal, joined by commas', () => {
  const ledger = begin([0, 9, 10, 99, 100, 2147483647]);
  ledger.appendSampled(makeSampled([151645]));
  ledger.appendInserted({ tokenIds: [7], text: '' });
  ledger.appendObservation({ tokenIds: [1000, 1], text: 'seen', messages: [] });
  assert.equal(ledger.promptJson.toString(), '0,9,10,99,100,2147483647,151645,7,1000,1');
  assert.equal(ledger.length, 10);
  assert.deepEqual(ledger.counts, { prompt: 6, sampled: 1, observation: 3 });
  assert.deepEqual(
    ledger.segments.map(({ kind, turn }) => [kind, turn]),
    [
      ['prompt', 0],
      ['sampled', 1],
      ['inserted', 1],
      ['observation', 1],
    ],
  );
});

test('next_prompt[:len(previous)] == previous, and a buffer returned earlier never changes', () => {
  const random = makeRandom(7);
  const ledger = begin();
  const handedOut: { buffer: Buffer; copy: string }[] = [];
  for (let turn = 0; turn < 200; turn++) {
    const ids = Int32Array.from({ length: Math.floor(random() * 300) }, () => Math.floor(random() * 200_000));
    if (turn % 2 === 0) ledger.appendSampled(makeSampled(ids));
    else ledger.appendObservation({ tokenIds: ids, text: '', messages: [] });
    handedOut.push({ buffer: ledger.promptJson, copy: ledger.promptJson.toString() });
  }
  for (const { buffer, copy } of handedOut) {
    assert.equal(buffer.toString(), copy);
    assert.ok(ledger.promptJson.subarray(0, buffer.length).equals(buffer));
  }
  const joined = ledger.segments.flatMap(({ tokenIds }) => Array.from(tokenIds));
  assert.equal(ledger.promptJson.toString(), joined.join());
});

test('a sampled segment keeps what the backend reported about it', () => {
  const ledger = begin();
  ledger.appendSampled(makeSampled([5, 6], { logprobs: [-0.25, -1.5], finishReason: 'length', retries: 2 }));
  const { messages, text, ...rest } = ledger.segments[1] ?? assert.fail();
  assert.deepEqual(rest, {
    kind: 'sampled',
    turn: 1,
    tokenIds: Int32Array.of(5, 6),
    logprobs: Float32Array.of(-0.25, -1.5),
    finish_reason: 'length',
    backend: backendId.parse('b1'),
    policy_versions: { first: 1, last: 2 },
    retries: 2,
  });
});

test('changing the arrays that were appended changes nothing in the ledger', () => {
  const ids = Int32Array.of(3, 4);
  const ledger = begin(ids);
  ids[0] = 99;
  assert.equal(ledger.promptJson.toString(), '3,4');
  assert.deepEqual(ledger.segments[0]?.tokenIds, Int32Array.of(3, 4));
});

const refusals: readonly [string, (ledger: Ledger) => void, RegExp][] = [
  ['logprobs that do not align', (ledger) => ledger.appendSampled(makeSampled([1, 2], { logprobs: [-1] })), /1 logprobs for 2/],
  ['a NaN logprob', (ledger) => ledger.appendSampled(makeSampled([1], { logprobs: [Number.NaN] })), /NaN/],
  ['an infinite logprob', (ledger) => ledger.appendSampled(makeSampled([1], { logprobs: [-Infinity] })), /Infinity/],
  ['a negative id', (ledger) => ledger.appendObservation({ tokenIds: [5, -1], text: '', messages: [] }), /-1/],
  ['a fraction', (ledger) => ledger.appendSampled(makeSampled([1.5])), /1.5/],
  ['an id past int32', (ledger) => ledger.appendInserted({ tokenIds: [2147483648], text: '' }), /2147483648/],
  ['a second prompt', (ledger) => ledger.appendPrompt({ tokenIds: [1], text: '', messages: [] }), /prompt/],
];

for (const [what, append, message] of refusals) {
  test(`${what} is refused and leaves the ledger unchanged`, () => {
    const ledger = begin();
    assert.throws(() => append(ledger), message);
    assert.equal(ledger.promptJson.toString(), '1,2');
    assert.equal(ledger.segments.length, 1);
    assert.equal(ledger.length, 2);
    assert.equal(ledger.turn, 0);
  });
}

test('nothing can precede the prompt, and the prompt cannot be empty', () => {
  assert.throws(() => new Ledger().appendSampled(makeSampled([1])), /not a prompt/);
  assert.throws(() => new Ledger().appendObservation({ tokenIds: [1], text: '', messages: [] }), /not a prompt/);
  assert.throws(() => begin([]), /empty prompt/);
});

/** What can be seen of a ledger. */
function look(ledger: Ledger) {
  const { length, messages, thoughts, turn, isCut, isContinued, policyVersions, knownExperts, segments, engines, counts } = ledger;
  return [
    [length, messages, thoughts, turn, isCut, isContinued, policyVersions, knownExperts, segments, engines, counts],
    ledger.promptJson.toString(),
  ];
}

test('a ledger that is made from its parts at any moment is equal, and goes on equally', () => {
  const random = makeRandom(11);
  const engine = { engine: 'vllm', engine_version: '1', dialect: 'vllm', logprobs_mode: 'raw', sampling: {} } as const;
  const some = () => Int32Array.from({ length: 1 + Math.floor(random() * 5) }, () => Math.floor(random() * 1000));
  const steps: ((ledger: Ledger, ids: Int32Array, shift: number) => void)[] = [
    (ledger, ids) => ledger.appendSampled(makeSampled(ids, { engine })),
    (ledger, ids) => ledger.appendSampled(makeSampled(ids, { finishReason: 'abort', messages: [] })),
    (ledger, ids) => ledger.appendSampled(makeSampled(ids, { messages: [{ role: 'assistant', content: 'said', reasoning: 'thought' }] })),
    (ledger, ids) => ledger.appendObservation({ tokenIds: ids, text: 'seen', messages: [{ role: 'tool', content: 'seen' }] }),
    (ledger, ids) => ledger.appendContinuation({ tokenIds: ids, text: 'more', messages: [{ role: 'assistant', content: 'said more' }] }),
    (ledger, ids) => ledger.appendInserted({ tokenIds: ids, text: '' }),
    (ledger, ids) => ledger.beginBranch({ tokenIds: ids, text: 'again', messages: [{ role: 'user', content: 'again' }] }),
    (ledger, ids) => {
      const rows = ledger.length + ids.length - 1;
      ledger.appendSampled(makeSampled(ids, { routedExperts: { from: 0, shape: [2], ids: new Uint8Array(2 * rows).fill(3) } }));
    },
  ];
  for (let round = 0; round < 60; round++) {
    const ledger = begin();
    let copy = Ledger.from(ledger);
    for (let step = 0; step < 12; step++) {
      const [act, ids] = [steps[Math.floor(random() * steps.length)] ?? assert.fail(), some()];
      act(ledger, ids, step);
      act(copy, ids, step);
      assert.deepEqual(look(copy), look(ledger));
      copy = Ledger.from(copy);
      assert.deepEqual(look(copy), look(ledger));
    }
  }
});

test('parts that no ledger has are refused', () => {
  const ledger = begin();
  ledger.appendSampled(makeSampled([1]));
  const { engines, isContinued } = ledger;
  const [prompt = assert.fail(), sampled = assert.fail()] = ledger.segments;
  const bad = [
    [sampled],
    [prompt, { ...sampled, branch: 1 }],
    [prompt, sampled, { ...sampled, turn: 0 }],
    [prompt, { ...sampled, logprobs: new Float32Array() }],
  ];
  for (const segments of bad) assert.throws(() => Ledger.from({ segments, engines, isContinued }), /the token ledger refuses/);
});
