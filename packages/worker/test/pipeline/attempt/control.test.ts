// A verifier that breaks: if it judges an agent that did nothing, the agent broke it, and has the lowest reward. Otherwise it is at fault.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RolloutError } from '@millrace/protocol';
import { probeBubblewrap, type Sandbox } from '@millrace/sandbox';
import { defineTool, type Scenario, ScenarioError } from '@millrace/scenarios';
import { renderCall } from '@millrace/testkit';
import { z } from 'zod';
import { bash, finish, says, WorkerBed } from '../worker-bed.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

type Evaluate = Scenario['evaluate'];

const own = (evaluate: Evaluate, parts: Partial<Scenario> = {}): Scenario => ({
  name: 'own',
  task: z.unknown(),
  init: () => ({ messages: [{ role: 'user', content: 'go' }], tools: ['finish'] }),
  lowestReward: () => -1,
  evaluate,
  ...parts,
});

async function judge(scenario: Scenario, ...turns: string[]) {
  await using bed = await WorkerBed.open({ scenarios: [scenario], policy: says(...turns) });
  await bed.startWorker();
  const { state, result, failure } = await bed.ended(await bed.submit({ id: 'r', scenario: 'own', task: {}, limits: { max_retries: 0 } }));
  return { state, reward: result?.reward, code: failure?.code, message: failure?.message };
}

/** Reads digits as Python's isdigit does, and then a number as int does. */
function readNumber(answer: string): number {
  if (!/^[\p{Nd}\p{No}]+$/u.test(answer)) return 0;
  if (!/^\d+$/.test(answer)) throw new Error(`invalid literal: ${answer}`);
  return Number(answer);
}

describe('a verifier that breaks', { skip, timeout: 240_000 }, () => {
  const dodges: [string, Evaluate, string][] = [
    ['a digit that is no number', ({ end }) => ({ reward: readNumber(end.answer) }), '²'],
    ['a text that is no JSON', ({ end }) => ({ reward: Number(JSON.parse(end.answer)) }), '{'],
    [
      'a text that the server of another party refuses',
      ({ end }) => ({ reward: Buffer.from(end.answer).equals(Buffer.from('\ufffd')) ? refuse() : 0 }),
      '\ud800',
    ],
    ['a score that is not finite', ({ end }) => ({ reward: 1 / (end.answer.length - 3) }), 'abc'],
    ['an answer on which the author blames the verifier', ({ end }) => (end.answer === 'x' ? refuse() : { reward: 0 }), 'x'],
  ];
  function refuse(): never {
    throw new ScenarioError('verifier', 'the server answered 500');
  }
  for (const [title, evaluate, answer] of dodges) {
    test(`${title} is the lowest reward`, async () => {
      const { state, reward, code, message } = await judge(own(evaluate), finish(answer));
      assert.deepEqual([state, reward, code], ['done', -1, 'policy-failed'], message);
      assert.match(message ?? '', /^the verifier breaks on what the agent left, and judges an agent that did nothing: /);
    });
  }

  test('files that break it are the lowest reward, and an untouched sandbox is the control', async () => {
    const scenario = own(
      ({ artifact }) => {
        if (artifact.toString() === 'mine') throw new Error('not a number');
        return { reward: 0 };
      },
      {
        sandbox: () => ({}),
        init: async ({ sandbox }) => {
          await sandbox.writeFile('score', '0');
          return { messages: [{ role: 'user', content: 'go' }], tools: ['bash', 'finish'] };
        },
        collect: ({ sandbox }) => sandbox.readFile('score', { maxBytes: 100 }),
      },
    );
    const { reward, code, message } = await judge(scenario, bash('printf mine > score'), finish());
    assert.deepEqual([reward, code], [-1, 'policy-failed'], message);
  });

  for (const [title, use] of [
    ['an answer that is too long to be an argument', (sandbox, answer) => sandbox.openProgram(['/bin/echo', answer])],
    ['an answer that names a file where none can be', (sandbox, answer) => sandbox.writeFile(`/proc/${answer.slice(0, 9)}`, 'x')],
    ['an answer that is too long to be a variable', (sandbox, answer) => sandbox.openProgram(['/bin/true'], { env: { ANSWER: answer } })],
  ] as const satisfies [string, (sandbox: Sandbox, answer: string) => Promise<unknown>][])
    test(`${title}, which its sandbox refuses, is the lowest reward`, async () => {
      const scenario = own(async ({ end, openSandbox }) => {
        if (end.answer.length > 9) await use(await openSandbox(), end.answer.repeat(20_000));
        return { reward: 0 };
      });
      const { reward, code, message } = await judge(scenario, finish('x'.repeat(10)));
      assert.deepEqual([reward, code], [-1, 'policy-failed'], message);
    });

  test('a sandbox that refuses what the task asks for is blamed on the task', async () => {
    const scenario = own(async ({ openSandbox }) => {
      await (await openSandbox()).writeFile('/proc/none', 'x');
      return { reward: 0 };
    });
    const { reward, code } = await judge(scenario, finish('42'));
    assert.deepEqual([reward, code], [null, 'sandbox-refused']);
  });

  test('one that breaks on every answer has no reward, and is blamed', async () => {
    const { state, reward, code } = await judge(
      own(() => Promise.reject(new Error('no key'))),
      finish('42'),
    );
    assert.deepEqual([state, reward, code], ['failed', null, 'evaluate-failed']);
  });

  test('one that breaks once, or is back when it is tried again, has its verdict', async () => {
    for (const failures of [1, 2]) {
      let calls = 0;
      const { reward } = await judge(
        own(({ end }) => (++calls <= failures && end.answer === '42' ? Promise.reject(new Error('busy')) : { reward: 1 })),
        finish('42'),
      );
      assert.equal(reward, 1, `after ${failures} failures`);
    }
  });

  test('a sandbox that dies without the agent is replaced, and the verdict stands', async () => {
    let calls = 0;
    const { state, reward } = await judge(
      own(() => (++calls < 3 ? Promise.reject(new RolloutError('sandbox-died', 'gone')) : { reward: 1 })),
      finish(),
    );
    assert.deepEqual([state, reward, calls], ['done', 1, 3]);
  });

  test('a machine that never lets it judge is blamed on the service', async () => {
    const { state, reward, code } = await judge(
      own(() => Promise.reject(new RolloutError('evaluate-disturbed', 'no memory'))),
      finish(),
    );
    assert.deepEqual([state, reward, code], ['failed', null, 'evaluate-disturbed']);
  });

  test('a text on which `respond` breaks is the lowest reward, and a `respond` that always breaks is blamed on the task', async () => {
    const guess = (isBroken: (text: string) => boolean) =>
      own(() => ({ reward: 0 }), {
        init: () => ({
          messages: [{ role: 'user', content: 'guess' }],
          tools: [],
          respond: ({ text }) => {
            if (isBroken(text)) throw new Error('invalid literal');
            return text === '1' ? { finish: text } : 'again';
          },
        }),
      });
    const hit = await judge(
      guess((text) => text === '²'),
      '3',
      '²',
    );
    assert.deepEqual([hit.reward, hit.code], [-1, 'policy-failed'], hit.message);
    const broken = await judge(
      guess(() => true),
      '3',
    );
    assert.deepEqual([broken.reward, broken.code], [null, 'run-failed'], broken.message);
  });

  const guessTool = (run: (text: string, sandbox: Sandbox) => unknown, parameters: z.ZodType = z.object({ text: z.string() })): Scenario =>
    own(() => ({ reward: 0 }), {
      sandbox: () => ({}),
      init: () => ({
        messages: [{ role: 'user', content: 'guess' }],
        tools: [
          'bash',
          'finish',
          defineTool({
            name: 'guess',
            description: 'Checks a guess.',
            parameters,
            run: async (args, { sandbox }) => String(await run((args as { text: string }).text, sandbox)),
          }),
        ],
      }),
    });
  const guess = (text: string) => renderCall('guess', { text });

  test('arguments on which a tool of the scenario breaks are the lowest reward', async () => {
    for (const [text, read] of [
      ['²', readNumber],
      ['{', (one: string) => JSON.parse(one)],
      ['\u0000', (one: string) => (one === '\u0000' ? refuse() : 0)],
    ] as const) {
      const { state, reward, code, message } = await judge(guessTool(read), guess('5'), guess(text), finish());
      assert.deepEqual([state, reward, code], ['done', -1, 'policy-failed'], message);
    }
  });

  test('files on which a tool of the scenario breaks are the lowest reward', async () => {
    const scenario = guessTool(async (_, sandbox) => {
      const { exitCode } = await sandbox.exec(['test', '-e', '/workspace/broken'], { timeoutMs: 10_000 });
      if (exitCode === 0) throw new Error('the board cannot be read');
    });
    const { reward, code, message } = await judge(scenario, bash('touch /workspace/broken'), guess('5'), finish());
    assert.deepEqual([reward, code], [-1, 'policy-failed'], message);
  });

  test('a tool that always breaks, breaks once, or takes no neutral arguments is blamed on the task', async () => {
    let calls = 0;
    const never = z.object({ text: z.string().refine((text) => text === 'x') });
    for (const scenario of [
      guessTool(() => Promise.reject(new Error('no key'))),
      guessTool(() => (calls++ === 0 ? Promise.reject(new Error('busy')) : 'no')),
      guessTool((text) => (text === 'x' ? Promise.reject(new Error('no')) : ''), never),
    ]) {
      const { state, reward, code } = await judge(scenario, guess('x'), finish());
      assert.deepEqual([state, reward, code], ['failed', null, 'tool-failed']);
    }
  });

  test('files on which `collect` breaks are the lowest reward', async () => {
    const scenario = own(() => ({ reward: 0 }), {
      sandbox: () => ({}),
      init: async ({ sandbox }) => {
        await sandbox.writeFile('score', '0');
        return { messages: [{ role: 'user', content: 'go' }], tools: ['bash', 'finish'] };
      },
      collect: async ({ sandbox }) =>
        Buffer.from(JSON.stringify(JSON.parse((await sandbox.readFile('score', { maxBytes: 100 })).toString()))),
    });
    const { reward, code, message } = await judge(scenario, bash("printf '{' > score"), finish());
    assert.deepEqual([reward, code], [-1, 'policy-failed'], message);
  });
});
