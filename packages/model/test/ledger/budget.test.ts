// What fits into a context, and how results that do not fit are shortened: fairly, in the middle, and with a note.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@millrace/protocol';
import { makeRandom, modelFolder } from '@millrace/testkit/plain';
import { openConversation } from '../../src/conversation.ts';
import { chooseResultRoom, chooseTurnTokens, cutMiddle, fitResults, shareRoom } from '../../src/ledger/budget.ts';
import { runSteps } from '../../src/tokenizer/tokenizer.ts';

test('a turn may sample its limit or what is left of the context, if that is less', () => {
  assert.equal(chooseTurnTokens(100, { max_context_tokens: 1000 }, { max_tokens: 50 }), 50);
  assert.equal(chooseTurnTokens(990, { max_context_tokens: 1000 }, { max_tokens: 50 }), 10);
  assert.equal(chooseTurnTokens(1200, { max_context_tokens: 1000 }, { max_tokens: 50 }), 0);
});

test('results leave room for one more turn', () => {
  assert.equal(chooseResultRoom(1000, { max_context_tokens: 32_768 }), 32_768 - 1000 - 256);
  assert.equal(chooseResultRoom(0, { max_context_tokens: 160 }), 150);
});

test('small results stay whole, and large ones share the rest evenly', () => {
  assert.deepEqual(shareRoom([10, 5000, 900, 5000], 4910), [10, 2000, 900, 2000]);
  assert.deepEqual(shareRoom([10, 20], 100), [10, 20]);
  assert.deepEqual(shareRoom([], 0), []);
  assert.equal(shareRoom([5000, 5000], 100), undefined);
  assert.equal(shareRoom([10], -5), undefined);
});

const conversations = [await openConversation(modelFolder('qwen3')), await openConversation(modelFolder('llama3_2'))];

test('a shortened text keeps its head and tail, and the note in the middle says how much is left out', () => {
  const [{ tokenizer }] = conversations as [(typeof conversations)[0]];
  const text = `first line\n${'日本語 '.repeat(2000)}\nlast line`;
  const cut = runSteps(cutMiddle(tokenizer.encodePlain(text), 200, (ids) => tokenizer.decodeSteps(ids)));
  assert.ok(cut.startsWith('first line\n') && cut.endsWith('\nlast line'));
  assert.match(cut, /\[… about \d+ tokens are left out here: the context is almost full …\]/);
  assert.ok(!cut.includes('\ufffd'));
  assert.ok(tokenizer.encodePlain(cut).length <= 200);
});

const noPast = { messages: [], tools: [] };

test('any results are made to fit or refused, and results that fit are unchanged', () => {
  const random = makeRandom(21);
  const kinds = ['x', 'word ', '"\n\\', '日', '👩‍👩‍👧', '-', '<|im_end|>', '\u0000'];
  for (const conversation of conversations) {
    for (let i = 0; i < 60; i++) {
      const results: Message[] = Array.from({ length: 1 + Math.floor(random() * 3) }, () => ({
        role: 'tool',
        content: (kinds[Math.floor(random() * kinds.length)] ?? '').repeat(Math.floor(random() * 3000)),
      }));
      const room = Math.floor(random() * 2000);
      const whole = conversation.deltaIds(results);
      const fitted = runSteps(fitResults(conversation, results, { render: (cut) => conversation.deltaSteps(cut, noPast), room }));
      if (whole.tokenIds.length <= room) assert.deepEqual(fitted, whole);
      else if (fitted) assert.ok(fitted.tokenIds.length <= room, `${fitted.tokenIds.length} in a room of ${room}`);
      if (room > 800)
        assert.ok(fitted, `nothing in a room of ${room} for ${JSON.stringify(results.map(({ content }) => content.slice(0, 9)))}`);
    }
  }
});
