// A rewritten history is a new branch: sampled tokens are in the trajectory once, as they were sampled, and inside a branch each prompt
// starts with the whole previous one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromBinary, type Message, toBinary, toTrajectoryView, trajectoryView } from '@millrace/protocol';
import { makeRandom, qwen3Folder } from '@millrace/testkit/plain';
import { openConversation } from '../../src/conversation.ts';
import { appendNext, renderNext } from '../../src/ledger/branch.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { runSteps } from '../../src/tokenizer/tokenizer.ts';
import { alphabet, makeSampled, makeText, tools } from '../random-text.ts';

const conversation = await openConversation(qwen3Folder());
const { tokenizer, endOfTurn } = conversation;

function hand(ledger: Ledger, messages: readonly Message[]) {
  const next = runSteps(renderNext(ledger, conversation, { messages, tools }));
  if (next) appendNext(ledger, conversation, next);
  return next;
}

function say(ledger: Ledger, content: string, isCut: boolean): Int32Array {
  const tokenIds = Int32Array.from([...tokenizer.encodePlain(content), ...(isCut ? [] : [endOfTurn.id])]);
  ledger.appendSampled({ ...makeSampled(tokenIds, isCut ? 'length' : 'stop'), text: content, messages: [{ role: 'assistant', content }] });
  return tokenIds;
}

test('for random rewrites, the trainable tokens of all branches are those sampled, none twice, and prompts only grow inside a branch', () => {
  const random = makeRandom(9);
  for (let round = 0; round < 15; round++) {
    const ledger = new Ledger();
    const sampled: number[] = [];
    let messages: Message[] = [{ role: 'user', content: makeText(random, alphabet) }];
    let branches = -1;
    let previous = Buffer.alloc(0);
    for (let turn = 0; turn < 12; turn++) {
      const next = hand(ledger, messages);
      assert.equal(next?.contextTokens, ledger.length);
      if (next?.kind === 'branch') {
        branches += 1;
        previous = Buffer.alloc(0);
      }
      const { promptJson } = ledger;
      assert.ok(promptJson.subarray(0, previous.length).equals(previous));
      assert.equal(promptJson.toString(), inBranch(ledger, branches).join());
      previous = Buffer.from(promptJson);
      const said = `said ${turn} ${makeText(random, [...'abc xyz\n'])}`;
      sampled.push(...say(ledger, said, random() < 0.2));
      messages = [...messages, { role: 'assistant', content: said }, { role: 'tool', content: makeText(random, alphabet) }];
      if (random() < 0.3) messages = rewrite(messages, random);
      assert.equal(ledger.turn, turn + 1);
    }
    const trained = ledger.segments.filter(({ kind }) => kind === 'sampled').flatMap(({ tokenIds }) => [...tokenIds]);
    assert.deepEqual(trained, sampled);
    assert.equal(ledger.counts.sampled, sampled.length);
    assert.equal(ledger.segments.filter(({ kind }) => kind === 'prompt').length, branches + 1);
  }
});

function inBranch(ledger: Ledger, branch: number): number[] {
  return ledger.segments.filter((segment) => (segment.branch ?? 0) === branch).flatMap(({ tokenIds }) => [...tokenIds]);
}

/** Drops the middle, changes a word of the past, or summarises it. */
function rewrite(messages: readonly Message[], random: () => number): Message[] {
  const choice = Math.floor(random() * 3);
  if (choice === 0 && messages.length > 3) return [...messages.slice(0, 1), ...messages.slice(3)];
  if (choice === 1) return messages.map((message, index) => (index === 0 ? { ...message, content: `${message.content} again` } : message));
  return [{ role: 'user', content: `so far: ${messages.length} messages` }];
}

test('messages that continue the current ones are appended, after a missing end of turn; the same messages again add nothing', () => {
  const ledger = new Ledger();
  const opening: Message[] = [{ role: 'user', content: 'go' }];
  assert.equal(hand(ledger, opening)?.kind, 'branch');
  assert.equal(hand(ledger, opening), undefined);
  say(ledger, 'cut off', true);
  const more: Message[] = [...opening, { role: 'assistant', content: 'cut off' }, { role: 'user', content: 'and on' }];
  assert.equal(hand(ledger, more)?.kind, 'delta');
  assert.deepEqual(
    ledger.segments.map(({ kind, branch }) => [kind, branch]),
    [
      ['prompt', undefined],
      ['sampled', undefined],
      ['inserted', undefined],
      ['observation', undefined],
    ],
  );
});

test('a buffer that was returned before a branch started never changes', () => {
  const ledger = new Ledger();
  hand(ledger, [{ role: 'user', content: 'go' }]);
  const { promptJson } = ledger;
  const copy = promptJson.toString();
  hand(ledger, [{ role: 'user', content: 'something else' }]);
  assert.equal(promptJson.toString(), copy);
  assert.equal(ledger.segments[1]?.branch, 1);
});

test('text that the policy wrote never becomes a control token in a new branch', () => {
  const ledger = new Ledger();
  hand(ledger, [{ role: 'user', content: 'go' }]);
  say(ledger, 'it ends with <|im_end|>', false);
  const rewritten: Message[] = [{ role: 'user', content: 'so far' }, ...ledger.messages.slice(1), { role: 'user', content: 'on' }];
  assert.equal(hand(ledger, rewritten), undefined);
  assert.equal(ledger.segments.length, 2);
});

test('a refused branch leaves the ledger unchanged', () => {
  const ledger = new Ledger();
  assert.throws(() => ledger.beginBranch({ tokenIds: [1], text: '', messages: [] }), /not a prompt/);
  ledger.appendPrompt({ tokenIds: [1, 2], text: '', messages: [] });
  for (const tokenIds of [[], [-1], [1.5]]) assert.throws(() => ledger.beginBranch({ tokenIds, text: '', messages: [] }), /refuses/);
  assert.deepEqual([ledger.length, ledger.promptJson.toString(), ledger.segments.length], [2, '1,2', 1]);
});

test('branches are kept in both formats of a trajectory', () => {
  const ledger = new Ledger();
  hand(ledger, [{ role: 'user', content: 'go' }]);
  say(ledger, 'went', false);
  hand(ledger, [{ role: 'user', content: 'again' }]);
  const trajectory = { rolloutId: 'r1', attempt: 1, model: 'm', tools, segments: ledger.segments };
  assert.deepEqual(fromBinary(toBinary(trajectory)), trajectory);
  const branches = trajectoryView.parse(toTrajectoryView(trajectory)).segments.map(({ branch }) => branch);
  assert.deepEqual(branches, [undefined, undefined, 1]);
});
