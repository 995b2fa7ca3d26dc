// What a scan finds in conversations, and what it leaves alone.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@millrace/protocol';
import { builtInPatterns, parsePattern, scanTrajectory } from '../src/logic/scan.ts';
import type { SegmentView } from '../src/logic/tokens.ts';

function makeSegment(kind: SegmentView['kind'], turn: number, message: Message): SegmentView {
  return { kind, turn, text: '', messages: [message], token_ids: [], logprobs: [], mask: kind === 'sampled' ? 1 : 0 };
}
const say = (turn: number, content: string, command?: string) =>
  makeSegment('sampled', turn, {
    role: 'assistant',
    content,
    ...(command === undefined ? {} : { tool_calls: [{ id: `c${turn}`, name: 'bash', arguments: { command } }] }),
  });
const reply = (turn: number, content: string) => makeSegment('observation', turn, { role: 'tool', content });
const namesOf = (...segments: SegmentView[]) => scanTrajectory(segments).map(({ name, turn }) => `${name} ${turn}`);

test('refusals and broken environments are found with their turn, in the words of the one who can say them', () => {
  assert.deepEqual(namesOf(say(1, "I'm sorry, but I can't help with that."), say(2, 'I can help.')), ['refusal 1']);
  assert.deepEqual(namesOf(reply(1, 'bash: gcc: command not found'), reply(2, 'all tests passed')), ['broken-environment 1']);
  assert.deepEqual(namesOf(say(1, 'it printed: command not found'), reply(1, "I can't help with that")), []);
  const task = makeSegment('prompt', 0, { role: 'user', content: 'Say: I cannot help' });
  assert.deepEqual(namesOf(task), []);
});

test('the same call three turns in a row is one loop; other calls in between are none', () => {
  assert.deepEqual(namesOf(say(1, '', 'ls'), reply(1, 'a'), say(2, '', 'ls'), say(3, '', 'ls'), say(4, '', 'ls')), ['loop 3']);
  assert.deepEqual(namesOf(say(1, '', 'ls'), say(2, '', 'pwd'), say(3, '', 'ls'), say(4, '', 'ls')), []);
  assert.deepEqual(namesOf(say(1, 'wait\n'.repeat(12)), say(2, 'a\n\n'.repeat(12))), ['loop 1']);
});

test("a reader's own pattern has a name, searches calls too, and is quoted with what is around it", () => {
  const pattern = parsePattern('gave-up=give\\s+up');
  assert.equal(pattern.name, 'gave-up');
  const [finding] = scanTrajectory([say(3, `${'x'.repeat(200)} I GIVE  UP now`)], [pattern]);
  assert.match(finding?.excerpt ?? '', /^…x+ I GIVE {2}UP now$/);
  assert.equal(scanTrajectory([say(1, '', 'rm -rf /')], [parsePattern('rm -rf')]).length, 1);
  assert.throws(() => parsePattern('('), SyntaxError);
  assert.equal(
    scanTrajectory(
      Array.from({ length: 50 }, (_, turn) => say(turn, 'give up')),
      [pattern],
    ).length,
    5,
  );
  assert.equal(builtInPatterns.length, 2);
});
