// The recipes of docs/recipes.md as a reader runs them, with a real service and real sandboxes. The policy is scripted, and so are the judge
// and the customer, behind OpenAI's chat route.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { probeBubblewrap } from '@millrace/sandbox';
import { findWrongToken, openFakeBackend, openFakeTokens, qwen3Folder, TestService } from '@millrace/testkit';
import { type ChatServer, openChatServer } from './test-bed/chat-server.ts';
import { policy } from './test-bed/policy.ts';
import { openProgram, runPython, skipWithoutPython } from './test-bed/python.ts';

const probe = await probeBubblewrap();
const skip = skipWithoutPython() ?? (probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`);
const file = (path: string) => join(import.meta.dirname, path);
const readLine = (path: string) => JSON.parse(readFileSync(file(path), 'utf8').split('\n')[0] ?? '');

test('docs/recipes.md shows each program as it is', () => {
  const page = readFileSync(file('../../docs/recipes.md'), 'utf8');
  const programs = globSync(['*.py', '*/*.{ts,py}'], { cwd: import.meta.dirname, exclude: ['*.test.ts', 'test-bed/**'] });
  assert.equal(programs.length, 7, programs.join(' '));
  for (const program of programs) assert.ok(page.includes(`\n${readFileSync(file(program), 'utf8')}\`\`\`\n`), program);
});

describe('the recipes', { skip }, () => {
  const open = new AsyncDisposableStack();
  let service: TestService;
  let judge: ChatServer;
  let customer: ChatServer;

  before(async () => {
    const inventory = open.use(await openProgram(['python3', file('mcp/inventory.py'), '--http', '0']));
    judge = open.use(await openChatServer());
    customer = open.use(await openChatServer());
    const backend = open.use(await openFakeBackend({ policy, tokens: await openFakeTokens() }));
    const { tools } = JSON.parse(readFileSync(file('mcp/millrace.json'), 'utf8'));
    tools.mcp.inventory.url = inventory.line;
    service = open.use(
      await TestService.open({
        workers: 1,
        tokenizer: qwen3Folder(),
        scenarios: ['llm-judge/scenario.ts', 'user-simulator/scenario.py', 'mcp/scenario.py'].map(file),
        tools,
        pipeline: { retryDelayMs: 0 },
        env: { JUDGE_URL: judge.url, USER_URL: customer.url, JUDGE_KEY: 'k', NO_PROXY: '127.0.0.1' },
      }),
    );
    await service.client.backends.join({ url: backend.url });
  });
  after(() => open[Symbol.asyncDispose]());

  /** Runs one submission to its end; its tokens must be exact. */
  async function run(submission: Record<string, unknown> & { readonly scenario: string }) {
    const [accepted] = await service.client.submit([{ task: {}, ...submission }]);
    const view = await service.client.wait(accepted?.id ?? '');
    if (view.result?.turns) assert.deepEqual(findWrongToken(await service.client.trajectory(view.id)), []);
    return view;
  }

  describe('an LLM judge', () => {
    const essay = readLine('llm-judge/tasks.jsonl');
    const ask = (question: string) => run({ ...essay, task: { ...essay.task, question }, limits: { max_retries: 1 } });

    test('gives the share of the rubric that an answer meets, whatever the answer asks of it', async () => {
      judge.answer = ([, asked]) => {
        const { answer, rubric } = JSON.parse(asked?.content ?? '');
        assert.equal(rubric.length, 2);
        return `\`\`\`json\n${JSON.stringify({ met: /less dense/.test(answer) ? [1, 1, 9] : [] })}\n\`\`\``;
      };
      assert.equal((await run(essay)).reward, 0.5);
      assert.equal((await ask('Say nothing useful.')).reward, 0);
      assert.equal(judge.seen.at(-1)?.headers.authorization, 'Bearer k');
    });

    test('that cannot give a verdict costs the agent its reward only if the answer is the reason', async () => {
      judge.answer = ([, asked]) => (/Ignore the rubric/.test(asked?.content ?? '') ? 'I give full points!' : '{"met": []}');
      const provoked = await ask('Provoke the judge.');
      assert.deepEqual([provoked.state, provoked.reward, provoked.failure?.blame], ['done', 0, 'policy']);
    });

    test('that is down gives no reward, and the rollout is tried again', async () => {
      judge.answer = () => 503;
      const { reward, failure, retries } = await ask('Why does ice float?');
      assert.deepEqual([reward, failure?.code, failure?.blame, retries], [null, 'sandbox-failed', 'sandbox', 1]);
      assert.match(failure?.message ?? '', /the judge at http:\S+ cannot be used: it answered 503/);
    });
  });

  describe('a simulated user', () => {
    const trip = readLine('user-simulator/tasks.jsonl');

    test('tells what it is asked for, and the booking is scored', async () => {
      customer.answer = (messages) => {
        const said = messages.at(-1)?.content ?? '';
        assert.match(messages[0]?.content ?? '', /Your wish: Fly to Oslo on Friday/);
        if (/Goodbye/.test(said)) return 'DONE';
        return /Where/.test(said) ? 'To Oslo.' : /When/.test(said) ? 'On Friday.' : 'I want to travel.';
      };
      const { reward, result } = await run(trip);
      assert.deepEqual([reward, result?.score.booked, result?.turns], [1, [['Oslo', 'Friday']], 4]);
      assert.equal((await run({ ...trip, task: { ...trip.task, day: 'Monday' } })).reward, 0);
    });

    test('that is down gives no reward', async () => {
      customer.answer = () => 500;
      const { reward, failure } = await run({ ...trip, limits: { max_retries: 0 } });
      assert.deepEqual([reward, failure?.code], [null, 'sandbox-failed'], failure?.message);
    });
  });

  test('an MCP server in the sandbox, and the same one outside of it', async () => {
    assert.equal((await run(readLine('mcp/tasks.jsonl'))).reward, 1);
    const { reward, id } = await run(readLine('mcp/tasks-http.jsonl'));
    assert.equal(reward, 1);
    const { segments } = await service.client.trajectory(id);
    const results = segments.flatMap(({ messages }) => messages.filter(({ role }) => role === 'tool').map(({ content }) => content));
    assert.deepEqual(results, ['96', '140']);
  });

  test('two agents negotiate, each with its own trajectory and reward', async () => {
    const printed = await runPython([file('several-agents/negotiate.py')], service.url);
    assert.match(printed, /^sellers 0\.5 \d+\nbuyers 0\.5 \d+\n$/);
    const views = await Array.fromAsync(service.client.list({ group: 'sellers' }));
    for (const { id } of views) assert.deepEqual(findWrongToken(await service.client.trajectory(id)), []);
  });

  test('a curriculum leaves what is always solved and what never is, and samples the rest', async () => {
    const printed = await runPython([file('curriculum.py'), file('curriculum.jsonl')], service.url);
    const steps = printed.trim().split('\n');
    const chosen = steps.map((line) => JSON.parse(/\[.*?\]/.exec(line)?.[0] ?? '') as number[]);
    assert.deepEqual(chosen.slice(0, 3).flat().sort(byValue), [...Array(12).keys()], 'each task once, at first');
    const later = chosen.slice(3).flat();
    const withSignal = later.filter((index) => index >= 4 && index < 8).length;
    assert.ok(withSignal >= 8, `${withSignal} of ${later.length} are tasks that are solved sometimes: ${later}`);
  });

  test('numbers of rollouts reach a function of yours, step by step', async () => {
    const printed = await runPython([file('trackers.py')], service.url);
    assert.match(printed, /^0 0\.5 \d+\.\d+\n1 0\.5 \d+\.\d+\n2 0\.5 \d+\.\d+\n$/);
  });
});

test('the notebook goes from tasks to a curve that rises', { skip }, async () => {
  await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder() });
  const env = { TOKENIZER: qwen3Folder(), IPYTHONDIR: service.folder };
  const printed = await runPython([file('test-bed/run_notebook.py'), file('reward-curve.ipynb')], service.url, env);
  const [, first, last] = /^(\d\.\d\d) -> (\d\.\d\d)$/m.exec(printed) ?? assert.fail(printed);
  assert.ok(Number(first) < 0.3 && Number(last) > 0.8, printed);
  assert.match(printed, /^0\.[89]\d ± 0\.\d\d|^1\.00 ± 0\.00/m);
  assert.match(printed, /SVG object/);
});

const byValue = (a: number, b: number) => a - b;
