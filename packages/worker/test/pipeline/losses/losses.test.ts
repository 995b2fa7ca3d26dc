// Answers that take their worker along while a user's scenario judges them, in a whole service with real worker processes: the third
// worker is the policy's fault, and the neighbours have their rewards.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { RolloutView } from '@millrace/protocol';
import {
  type FakeBackend,
  type FakeTokens,
  findWrongToken,
  openFakeBackend,
  openFakeTokens,
  type Policy,
  qwen3Folder,
  renderCall,
  TestService,
} from '@millrace/testkit';

const scenarios = [fileURLToPath(new URL('./deadly-play.ts', import.meta.url))];

/** `Say x.` is answered with x; `Write x.` with a turn that says it and calls no tool, so that `respond` gets it. */
const policy: Policy = ({ opening }) => {
  const [, verb, text = ''] = /(Say|Write) (\w+)\./.exec(opening()) ?? [];
  return { text: verb === 'Say' ? renderCall('finish', { answer: text }) : text };
};

let tokens: FakeTokens;
before(async () => {
  tokens = await openFakeTokens();
});

interface Play {
  readonly service: TestService;
  readonly backend: FakeBackend;
}

/** Of all rollouts, by id. Each task is named after what it does. */
async function play(
  { service, backend }: Play,
  tasks: Readonly<Record<string, { readonly question: string; readonly isBroken?: boolean }>>,
): Promise<Record<string, RolloutView>> {
  await service.client.backends.join({ url: backend.url });
  const neighbours = Object.fromEntries([1, 2, 3, 4].map((n) => [`neighbour-${n}`, { question: 'Say right.' }]));
  const all = { ...tasks, ...neighbours };
  await service.client.submit(Object.entries(all).map(([id, task]) => ({ id, scenario: 'deadly', task })));
  const views = await Array.fromAsync(service.client.results(Object.keys(all)));
  for (const { id, state, result } of views) if (id.startsWith('neighbour')) assert.deepEqual([id, state, result?.reward], [id, 'done', 1]);
  return Object.fromEntries(views.map((view) => [view.id, view]));
}

/** Judged by its policy's fault, after workers that died of it in evaluate; its tokens are those that were sampled. */
async function checkVerdict({ client }: TestService, view: RolloutView | undefined): Promise<void> {
  assert.ok(view);
  assert.deepEqual(
    [view.id, view.state, view.result?.reward, view.failure?.code, view.failure?.blame, view.failure?.stage, view.result?.stop_reason],
    [view.id, 'done', -1, 'policy-failed', 'policy', 'evaluate', 'tool_stopped'],
  );
  assert.match(view.failure?.message ?? '', /took \d+ workers, the last of which had judged an agent that did nothing/);
  const inEvaluate = view.failures.filter(({ code, stage }) => code === 'worker-lost' && stage === 'evaluate');
  assert.ok(inEvaluate.length >= 2 && view.losses >= 3, JSON.stringify(view.failures));
  const trajectory = await client.trajectory(view.id);
  assert.deepEqual([trajectory.rolloutId, trajectory.attempt], [view.id, view.attempt]);
  assert.deepEqual(findWrongToken(trajectory), []);
  assert.equal(
    trajectory.segments.reduce((sum, { kind, tokenIds }) => sum + (kind === 'sampled' ? tokenIds.length : 0), 0),
    view.result?.tokens.sampled,
  );
}

function checkLost(view: RolloutView | undefined, stage: string): void {
  assert.deepEqual(
    [view?.state, view?.result?.reward ?? null, view?.failure?.code, view?.failure?.blame, view?.failure?.stage],
    ['failed', null, 'worker-lost', 'service', stage],
  );
}

const deaths = ['crash', 'abort', 'stray', 'memory'];

test('an answer that kills three workers in evaluate has the lowest reward, and its neighbours have theirs', async () => {
  await using backend = await openFakeBackend({ policy, tokens });
  // Little memory, so that it is soon exhausted.
  const env = { NODE_OPTIONS: '--max-old-space-size=300' };
  await using service = await TestService.open({ workers: 2, tokenizer: qwen3Folder(), scenarios, pipeline: { retryDelayMs: 50 }, env });
  const views = await play({ service, backend }, Object.fromEntries(deaths.map((death) => [death, { question: `Say ${death}.` }])));
  for (const death of deaths) await checkVerdict(service, views[death]);
});

test('what kills its workers before it is judged, or whatever the agent does, has no reward and is not the policy’s fault', async () => {
  await using backend = await openFakeBackend({ policy, tokens });
  await using service = await TestService.open({ workers: 2, tokenizer: qwen3Folder(), scenarios, pipeline: { retryDelayMs: 50 } });
  const views = await play(
    { service, backend },
    { 'in-run': { question: 'Write crash.' }, 'broken-verifier': { question: 'Say right.', isBroken: true } },
  );
  checkLost(views['in-run'], 'run');
  checkLost(views['broken-verifier'], 'evaluate');
});

test('an answer that freezes its workers has the lowest reward when the third lease ends, and the workers are replaced', async () => {
  await using backend = await openFakeBackend({ policy, tokens });
  const pipeline = { retryDelayMs: 50, leaseMs: 3000, handBackMs: 1000 };
  await using service = await TestService.open({ workers: 2, tokenizer: qwen3Folder(), scenarios, pipeline });
  const views = await play({ service, backend }, { freeze: { question: 'Say freeze.' } });
  await checkVerdict(service, views.freeze);
  assert.match(await service.log(), /worker-frozen/);
});
