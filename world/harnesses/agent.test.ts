// Real harnesses as the agents of rollouts: each acts in a sandbox of a running service, its model is the policy, and every token of its
// trajectory is what the backend sampled.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { harnessCatalog, probeBubblewrap } from '@millrace/sandbox';
import { type FakeBackend, findWrongToken, openFakeBackend, type Policy, qwen3Folder, renderCall, TestService } from '@millrace/testkit';
import { z } from 'zod';
import { worldCacheFolder } from '../engines/world-cache.ts';
import { shellNames, toInput, toolSchema } from './scripted-model.ts';

const probe = await probeBubblewrap();

/** The last one ends mini-swe-agent. */
const commands = [
  "printf 'one\\n' > first.txt",
  "(cat first.txt; printf 'two\\n') > second.txt",
  'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT',
];
const declared = z.object({ function: z.object({ name: z.string(), parameters: toolSchema }) });

/** Calls the shell of whatever harness asks, once for each command. A request without a shell is a side call, and gets a text. */
const policy: Policy = ({ turn, opening }) => {
  const prompt = opening();
  const lines = prompt.split('\n').filter((line) => line.startsWith('{"type": "function"')); // as the chat template declares tools
  const shell = lines.map((line) => declared.parse(JSON.parse(line)).function).find(({ name }) => shellNames.test(name));
  const command = shell && (prompt.includes('Sleep for an hour.') ? 'sleep 3600' : commands[turn]);
  if (!shell || command === undefined) return { text: 'All done.' };
  return { text: renderCall(shell.name, toInput({ name: shell.name, schema: shell.parameters }, command)) };
};

const report = z.looseObject({ name: z.string(), version: z.string(), exact_share: z.number(), branches: z.array(z.looseObject({})) });

describe('a harness as the agent of a rollout', { skip: probe.ok ? false : `${probe.reason}; try: ${probe.remedy}` }, () => {
  let backend: FakeBackend;
  let service: TestService;
  before(async () => {
    backend = await openFakeBackend({ policy });
    const [codex] = harnessCatalog;
    service = await TestService.open({
      workers: 1,
      tokenizer: await qwen3Folder(),
      run: join(worldCacheFolder(), 'harnesses'),
      harnesses: [{ ...codex, name: 'my-agent' }],
    });
    await service.client.backends.join({ url: backend.url });
  });
  after(async () => {
    await service[Symbol.asyncDispose]();
    await backend[Symbol.asyncDispose]();
  });

  for (const { name, version } of [...harnessCatalog, { name: 'my-agent', version: harnessCatalog[0]?.version }]) {
    test(`${name} solves a task in several turns, and every token is what the backend sampled`, async (context) => {
      const [accepted] = await service.client.submit([
        {
          scenario: 'shell',
          agent: name,
          task: { instruction: 'Write the two files.', check: '[ "$(cat second.txt)" = "$(printf \'one\\ntwo\')" ]' },
          limits: { max_context_tokens: 60_000 },
        },
      ]);
      const view = await service.client.wait(accepted?.id ?? '');
      assert.equal(view.state, 'done', JSON.stringify(view.failure));
      assert.equal(view.reward, 1, JSON.stringify(view.result));
      assert.ok((view.result?.turns ?? 0) >= 3, JSON.stringify(view.result));
      const harness = report.parse(view.result?.score.harness);
      assert.deepEqual([harness.name, harness.version], [name, version]);
      assert.deepEqual(findWrongToken(await service.client.trajectory(view.id)), []);
      context.diagnostic(`${view.result?.turns} turns, ${harness.branches.length} branches, exact share ${harness.exact_share}`);
    });
  }

  test('a harness is stopped when its turns or its time are spent, and what it left is judged', async () => {
    const [turns, time] = await service.client.submit([
      { scenario: 'shell', agent: 'codex', task: { instruction: 'Write.', check: 'test -e first.txt' }, limits: { max_turns: 2 } },
      { scenario: 'shell', agent: 'codex', task: { instruction: 'Sleep for an hour.', check: 'true' }, limits: { run_timeout_s: 8 } },
    ]);
    const spent = await service.client.wait(turns?.id ?? '');
    assert.deepEqual([spent.state, spent.result?.stop_reason, spent.result?.turns, spent.reward], ['done', 'max_turns', 2, 1]);
    const late = await service.client.wait(time?.id ?? '');
    assert.deepEqual([late.state, late.result?.stop_reason, late.reward], ['done', 'rollout_timeout', 1], JSON.stringify(late));
  });

  test('a task without a sandbox cannot have a harness, and says so', async () => {
    const [accepted] = await service.client.submit([{ scenario: 'math', agent: 'codex', task: { question: '1 + 1?', answer: '2' } }]);
    const { failure } = await service.client.wait(accepted?.id ?? '');
    assert.deepEqual([failure?.code, failure?.blame], ['task-failed', 'task']);
    assert.match(failure?.message ?? '', /has no sandbox, and codex runs in one/);
  });

  test('a rollout that names an unknown harness is refused with what it may have meant', async () => {
    const task = { instruction: 'x', check: 'true' };
    await assert.rejects(service.client.submit([{ scenario: 'shell', agent: 'codx', task }]), /agent: no harness is named "codx".*codex/);
  });
});
