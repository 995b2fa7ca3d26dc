// The gym scenario with environments of this file: what becomes of their observations, rewards and failures. The environments of GEM,
// SkyRL-Gym and OpenEnv are played in the second test tier.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { probeBubblewrap } from '@millrace/sandbox';
import { gymTask } from '@millrace/scenarios';
import { makeTempFolder, type TempFolder } from '@millrace/testkit/plain';
import { says, WorkerBed } from '../pipeline/worker-bed.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

const source = `
import os
import time

class Count:
    """Wants the numbers from 1, one per turn."""

    def __init__(self, to=2):
        print("noise on standard output")
        self.to = to

    def reset(self, seed=None):
        self.at = 0
        return f"Count to {self.to}, seed {seed}.", {}

    def step(self, action):
        if action == "crash":
            raise RuntimeError("no such move")
        if action == "exit":
            os._exit(7)
        if action == "sleep":
            time.sleep(600)
        right = action == str(self.at + 1)
        self.at += right
        done = self.at == self.to
        return f"at {self.at}", 0.5 if right else -0.25, done, False, {"at": self.at}

class Chat:
    def __init__(self, env_config=None, extras=None):
        self.truth = extras["truth"]

    def init(self, prompt):
        return prompt, {}

    def step(self, action):
        right = action == self.truth
        said = [] if right else [{"role": "user", "content": "again"}]
        return {"observations": said, "reward": 1.0 if right else 0.0, "done": right, "metadata": {}}

    def get_metrics(self):
        return {"closed": True}

    def close(self):
        pass
`;

describe('the gym scenario', { skip }, () => {
  let folder: TempFolder;
  before(async () => {
    folder = await makeTempFolder('gym');
    await writeFile(join(folder.path, 'own_envs.py'), source);
  });
  after(() => folder[Symbol.asyncDispose]());

  const play = async (task: Record<string, unknown>, turns: readonly string[], limits: Record<string, unknown> = {}) => {
    await using bed = await WorkerBed.open({ policy: says(...turns), gym: { packages: folder.path } });
    await bed.startWorker();
    const given = { id: 'r1', scenario: 'gym', task, limits: { max_retries: 0, ...limits } };
    const ended = await bed.ended(await bed.submit(given));
    const trajectory = await bed.store.trajectory(ended.id);
    const messages = trajectory?.segments.flatMap((segment) => segment.messages) ?? [];
    return { ...ended, said: messages.map(({ role, content }) => `${role}: ${content}`) };
  };
  const count = { kind: 'gymnasium', env: 'own_envs:Count', seed: 5 };

  test('the text of a turn is the action, the observation is the next message, and the rewards add up', async () => {
    const { state, result, said } = await play({ ...count, system: 'Be brief.' }, ['1', '3', '2']);
    assert.equal(state, 'done');
    const wanted = [
      'system: Be brief.',
      'user: Count to 2, seed 5.',
      'assistant: 1',
      'user: at 1',
      'assistant: 3',
      'user: at 1',
      'assistant: 2',
    ];
    assert.deepEqual(said, wanted);
    assert.deepEqual([result?.reward, result?.stop_reason], [0.75, 'completed']);
    assert.deepEqual(result?.score, { steps: 3, done: true, rewards: [0.5, -0.25, 0.5], info: { at: 2 }, metrics: {} });
  });

  test('an agent that stops at a limit keeps the rewards of its steps', async () => {
    const { result } = await play({ ...count, args: { to: 9 }, observation_role: 'tool' }, ['1', '2', '3'], { max_turns: 3 });
    assert.deepEqual([result?.reward, result?.stop_reason, result?.score?.done], [1, 'max_turns', false]);
  });

  test('init, step and close: messages go in and out, and the metrics are kept', async () => {
    const task = { kind: 'skyrl', env: 'own_envs:Chat', args: { extras: { truth: 'b' } }, prompt: [{ role: 'user', content: 'which?' }] };
    const { result, said } = await play(task, ['a', 'b']);
    assert.deepEqual(said, ['user: which?', 'assistant: a', 'user: again', 'assistant: b']);
    assert.deepEqual([result?.reward, result?.score?.metrics], [1, { closed: true }]);
  });

  for (const [action, message] of [
    ['crash', /failed at step 1: RuntimeError: no such move/],
    ['exit', /failed at step 1: it ended with exit code 7/],
    // The service waits a little longer; on a busy machine that may end first.
    ['sleep', /failed at step 1: it did not answer within 1\.6 s|respond took longer than its 2 s/],
  ] as const) {
    test(`an agent that breaks its environment by ${action} has the lowest reward, not none`, async () => {
      const { state, failure, result } = await play({ ...count, reward_range: [-1, 1] }, [action], { tool_timeout_s: 2 });
      assert.deepEqual([state, failure?.code, result?.reward], ['done', 'policy-failed', -1]);
      assert.match(failure?.message ?? '', message);
    });
  }

  test('an environment that cannot be started is blamed on the task', async () => {
    const { state, failure } = await play({ kind: 'gymnasium', env: 'own_envs:Nothing' }, ['1']);
    assert.deepEqual([state, failure?.code, failure?.blame], ['failed', 'task-failed', 'task']);
    assert.match(failure?.message ?? '', /own_envs:Nothing could not be started: AttributeError: .*Nothing/);
  });
});

test('a gym task that cannot work is refused with the name of the field', () => {
  const issues = (task: unknown) => gymTask.safeParse(task).error?.issues.map(({ path }) => path.join('.'));
  assert.deepEqual(issues({ kind: 'skyrl', env: 'gsm8k' }), ['prompt']);
  assert.deepEqual(issues({ kind: 'gem', env: 'x', prompt: [{ role: 'user', content: 'x' }] }), ['prompt']);
  assert.deepEqual(issues({ kind: 'openenv', env: 'echo' }), ['env']);
  assert.deepEqual(issues({ kind: 'chess', env: 'x' }), ['kind']);
});
