// A session keeps every sampled token exactly once, with its weights, whatever its client does with the replies.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeRandom, type Policy, renderCall } from '@millrace/testkit';
import { checkTokens, openSessionBed, type SessionBed, splitBranches, tokens } from './session-bed.ts';

interface ClientMessage {
  role: string;
  content: string | null;
  reasoning_content?: string;
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

const tools = [{ type: 'function', function: { name: 'bash', description: 'Runs.', parameters: { type: 'object', properties: {} } } }];
const user = (content: string): ClientMessage => ({ role: 'user', content });

test('only new messages are rendered, and a turn goes back with its own ids although its arguments were re-serialised', async () => {
  await using bed = await openSessionBed([
    {
      policy: ({ turn }) => ({
        text: turn === 0 ? '<tool_call>\n{"name":  "bash", "arguments": {"b": 1.0, "a": "é"}}\n</tool_call>' : 'Done.',
      }),
    },
  ]);
  const first = await bed.ask({ messages: [user('go')], tools });
  const [call] = first.calls;
  assert.ok(call);
  const changed = {
    ...toMessage(first),
    tool_calls: [{ id: call.id, type: 'function', function: { name: 'bash', arguments: '{"a":"\\u00e9", "b":1}' } }],
  };
  await bed.ask({ messages: [user('go'), changed, { role: 'tool', tool_call_id: call.id, content: 'ok' }], tools });
  checkTokens(bed);
  const { exact_share, branches } = bed.session.book.toReport('all', 1);
  assert.equal(exact_share, 1);
  assert.equal(branches.length, 1);
});

test('a turn that was not sampled here starts a branch, and the report says that known turns were rendered from text', async () => {
  await using bed = await openSessionBed([{}]);
  const first = await bed.ask({ messages: [user('one')] });
  const second = await bed.ask({ messages: [user('one'), toMessage(first), user('two')] });
  const foreign = { role: 'assistant', content: 'written by someone else' };
  await bed.ask({ messages: [user('one'), toMessage(first), user('two'), foreign, user('three')] });
  checkTokens(bed);
  const { exact_share, branches, retokenised } = bed.session.book.toReport('last', 1);
  assert.equal(second.finish, 'stop');
  assert.deepEqual(
    branches.map(({ reason, reward }) => [reason, reward]),
    [
      ['opening', null],
      ['edited', 1],
    ],
  );
  assert.equal(retokenised.length, 1);
  assert.ok(exact_share < 1);
});

test('a backend that breaks in mid-stream is replaced, and the client sees one reply', async () => {
  const policy: Policy = ({ promptIds }) => ({ text: `part of ${promptIds.length} and some more words that take a while to say` });
  await using bed = await openSessionBed([
    { policy, tokenMs: 10 },
    { policy, tokenMs: 1 },
  ]);
  let broken: Promise<void> | undefined;
  const onEvent = () => {
    broken ??= bed.backends[0]?.[Symbol.asyncDispose]();
  };
  const reply = await bed.ask({ messages: [user('go')], stream: true }, { onEvent });
  await broken;
  checkTokens(bed);
  const [segments = []] = splitBranches(bed.session.book.ledger.segments);
  const sampled = segments.filter(({ kind }) => kind === 'sampled');
  assert.deepEqual(
    sampled.map(({ backend, finish_reason }) => [backend, finish_reason]),
    [
      ['b0', 'abort'],
      ['b1', 'stop'],
    ],
  );
  assert.equal(
    reply.usage.sampledTokens,
    sampled.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0),
  );
  assert.equal(reply.text, sampled.map(({ text }) => text).join(''));
});

test('what a client asks for is recorded, and changes nothing unless it is allowed', async () => {
  await using bed = await openSessionBed([{}]);
  await bed.ask({ messages: [user('a')], temperature: 0.1, max_tokens: 5 });
  assert.equal(bed.backends[0]?.requests[0]?.sampling.temperature, 1);
  assert.deepEqual(bed.session.book.toReport('all', 0).asked, [{ requests: 1, parameters: { temperature: 0.1, max_tokens: 5 } }]);
  await using other = await openSessionBed([{}], { allow: ['temperature'] });
  await other.ask({ messages: [user('a')], temperature: 0.1, max_tokens: 5 });
  assert.equal(other.backends[0]?.requests[0]?.sampling.temperature, 0.1);
});

test('a client that leaves before its first token, again and again, leaves no prompts in memory', async () => {
  await using bed = await openSessionBed([{ latencyMs: 5000 }]);
  for (let at = 0; at < 5; at += 1) {
    const gone = new AbortController();
    const asked = bed.ask({ messages: [user(`another opening ${at}`)] }, { signal: gone.signal });
    while (bed.backends[0]?.inFlight === 0) await new Promise(setImmediate);
    gone.abort(new Error('gone'));
    await assert.rejects(asked);
  }
  assert.deepEqual(bed.session.book.lineages, []);
  assert.equal(bed.session.book.toReport('all', 1).exact_share, 1);
});

test('titles, sub-agents and compaction are marked, and each rule says what a branch is worth', async () => {
  await using bed = await openSessionBed([{}]);
  const title = await bed.ask({ messages: [{ role: 'system', content: 'Make a title.' }, user('go')] });
  const main = await bed.ask({ messages: [{ role: 'system', content: 'Work.' }, user('go')], tools });
  await bed.ask({ messages: [{ role: 'system', content: 'Explore.' }, user('look')], tools });
  const summary = [{ role: 'system', content: 'Work.' }, user('go'), toMessage(main), user('Summarise.')];
  await bed.ask({ messages: summary, tools: [] });
  await bed.ask({ messages: [{ role: 'system', content: 'Work.' }, user('this was done: all')], tools });
  assert.equal(title.finish, 'stop');
  const { branches } = bed.session.book.toReport('weighted', 0.5);
  assert.deepEqual(
    branches.map(({ role, reason }) => [role, reason]),
    [
      ['side-call', 'opening'],
      ['main', 'sub-agent'],
      ['sub-agent', 'sub-agent'],
      ['side-call', 'tools'],
      ['main', 'compaction'],
    ],
  );
  assert.ok(branches.every(({ reward, weight }) => reward === 0.5 && weight > 0));
  assert.ok(Math.abs(branches.reduce((sum, { weight }) => sum + weight, 0) - 1) < 1e-9);
  const last = bed.session.book.toReport('last', 0.5).branches;
  assert.deepEqual(
    last.map(({ reward, weight }) => [reward, weight]),
    [...Array(4).fill([null, 0]), [0.5, 1]],
  );
});

for (const seed of [1, 2, 3, 4, 5, 6]) {
  test(`no sampled token is lost, doubled or given other weights, whatever the client does (seed ${seed})`, async () => {
    const random = makeRandom(seed);
    let answered = 0;
    const policy: Policy = (input) => {
      const { text } = sayAtRandom(input.promptIds);
      answered += tokens.encode(text).length + 1;
      return { text };
    };
    await using bed = await openSessionBed([{ policy }, { policy }]);
    await playClient(bed, random, 14);
    checkTokens(bed);
    const { counts } = bed.session.book.ledger;
    assert.equal(counts.sampled, answered);
    const { exact_share, retokenised } = bed.session.book.toReport('all', 1);
    assert.equal(exact_share < 1, retokenised.length > 0);
  });

  test(`tokens of replies that broke off are kept, and nothing is shown twice (seed ${seed})`, async () => {
    const random = makeRandom(100 + seed);
    const policy: Policy = (input) => sayAtRandom(input.promptIds);
    const faults = () => (random() < 0.2 ? ('cut' as const) : undefined);
    await using bed = await openSessionBed([
      { policy, faults, tokenMs: 1 },
      { policy, faults, tokenMs: 1 },
    ]);
    await playClient(bed, random, 10, true);
    checkTokens(bed);
  });
}

/** A turn that depends on its prompt alone: text, reasoning and calls with odd spaces and orders of keys. */
function sayAtRandom(promptIds: Int32Array): { readonly text: string } {
  const random = makeRandom(promptIds.reduce((sum, id) => (Math.imul(sum, 31) + id) | 0, 7) >>> 0);
  const parts: string[] = [];
  if (random() < 0.3) parts.push(`<think>\nI think of ${Math.floor(random() * 1000)}.\n</think>\n\n`);
  if (random() < 0.7) parts.push(`Words ${Math.floor(random() * 1000)} < é 漢字 ${'and more '.repeat(Math.floor(random() * 4))}`);
  while (random() < 0.5)
    parts.push(`\n${renderCall('bash', { command: `echo ${Math.floor(random() * 1000)}`, b: 1, a: [1, { z: 2, y: 3 }] })}`);
  return { text: parts.join('') || 'Nothing.' };
}

/** Random behaviour of harnesses. */
async function playClient(bed: SessionBed, random: () => number, steps: number, breaks = false): Promise<void> {
  const talks: ClientMessage[][] = [[{ role: 'system', content: 'Be short.' }, user('start')]];
  let version = 0;
  for (let step = 0; step < steps; step += 1) {
    const at = Math.floor(random() * talks.length);
    const talk = talks[at] ?? [];
    if (random() < 0.2) bed.swap(++version);
    const choice = random();
    if (choice < 0.15) talks.push([{ role: 'system', content: `Agent ${step}.` }, user('sub task')]);
    else if (choice < 0.25 && talk.length > 6) talks[at] = [...talk.slice(0, 1), user(`summary ${step}`), ...talk.slice(lastTurn(talk))];
    else if (choice < 0.4) await bed.ask({ messages: talk, tools });
    else if (choice < 0.5) {
      const [one, two] = await Promise.all([bed.ask({ messages: talk, tools }), bed.ask({ messages: talk, tools })]);
      talks.push([...talk, ...answer(random() < 0.5 ? one : two, random)]);
    } else if (breaks && choice < 0.65) await breakOff(bed, talk);
    else talk.push(...answer(await bed.ask({ messages: talk, tools }), random));
  }
}

async function breakOff(bed: SessionBed, messages: readonly ClientMessage[]): Promise<void> {
  const gone = new AbortController();
  const onEvent = () => gone.abort(new Error('gone'));
  await bed.ask({ messages, tools, stream: true }, { signal: gone.signal, onEvent }).catch(() => {}); // it is what the test does
}

/** Where the last turn of the assistant begins, with what it answers; the end if there is none. */
function lastTurn(talk: readonly ClientMessage[]): number {
  const at = talk.findLastIndex(({ role }) => role === 'assistant');
  return at < 0 ? talk.length : at;
}

/** The reply as a harness sends it back, and what follows it. */
function answer(reply: Awaited<ReturnType<SessionBed['ask']>>, random: () => number): ClientMessage[] {
  const message = toMessage(reply);
  if (random() < 0.5) delete message.reasoning_content;
  for (const { function: called } of message.tool_calls ?? []) {
    const entries = Object.entries(JSON.parse(called.arguments));
    called.arguments = JSON.stringify(Object.fromEntries(random() < 0.5 ? entries.reverse() : entries), null, random() < 0.5 ? 1 : 0);
  }
  const results = (message.tool_calls ?? []).map(({ id }) => ({
    role: 'tool',
    tool_call_id: id,
    content: `out ${Math.floor(random() * 99)}`,
  }));
  return [message, ...(results.length > 0 ? results : [user(`next ${Math.floor(random() * 99)}`)])];
}

function toMessage({ text, reasoning, calls }: Awaited<ReturnType<SessionBed['ask']>>): ClientMessage {
  return {
    role: 'assistant',
    content: text === '' ? null : text,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, name, arguments: args }) => ({ id, type: 'function', function: { name, arguments: args } })),
    }),
  };
}
