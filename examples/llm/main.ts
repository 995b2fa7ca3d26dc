// `npm run demo:llm`: a real model on this machine, without a GPU. A few dozen math rollouts in groups run through the real service, and
// it prints what the model said, its rewards, and how fast it was. `--engine vllm` or `--engine llama` chooses.

import { parseArgs } from 'node:util';
import type { RolloutView, SubmissionInput } from '@millrace/protocol';
import { TestService } from '@millrace/testkit';
import { openDemoEngine } from './engine.ts';
import { openStyle, renderGroups, renderTotals, type SampledReport } from './report.ts';

const { values } = parseArgs({
  options: { engine: { type: 'string' }, groups: { type: 'string', default: '8' }, size: { type: 'string', default: '4' } },
});
const say = (line: string) => console.log(line);
const style = openStyle(process.stdout.isTTY === true && process.env.NO_COLOR === undefined);
const width = Math.min(process.stdout.columns ?? 110, 130);

await using engine = await openDemoEngine(values.engine, say);
say('Starting `millrace serve` with one worker …');
await using service = await TestService.open({ workers: 1, tokenizer: engine.tokenizer, pipeline: { runSlots: 16 } });
const { client } = service;
await client.backends.join({ id: 'smollm2', url: engine.url, dialect: engine.dialect, model: 'smollm2', logprobs_mode: 'processed' });

const questions = makeQuestions(Number(values.groups));
const submissions = questions.flatMap((task, group) => makeSiblings(task, group, Number(values.size)));
say(`Sampling ${submissions.length} rollouts with ${engine.name}: ${questions.length} questions, ${values.size} siblings each …\n`);
const startedAt = performance.now();
const views: RolloutView[] = [];
for await (const view of await client.run(submissions)) {
  views.push(view);
  drawProgress(views.length, submissions.length);
}
const seconds = (performance.now() - startedAt) / 1000;
say('\n');

const sampled: SampledReport[] = await Promise.all(
  views
    .filter(({ state }) => state === 'done')
    .map(async (view) => ({ view, question: `${view.metadata?.question}`, trajectory: await client.trajectory(view.id) })),
);
for (const line of renderGroups(sampled, style, width)) say(line);
const sum = (count: (view: RolloutView) => number) => views.reduce((total, view) => total + count(view), 0);
const totals = {
  seconds,
  sampledTokens: sum(({ result }) => result?.tokens.sampled ?? 0),
  promptTokens: await readCounter('millrace_backend_prompt_tokens_total'),
  cachedTokens: await readCounter('millrace_backend_cached_tokens_total'),
};
for (const line of renderTotals(sampled, totals, style)) say(line);

const failed = views.filter(({ state }) => state !== 'done');
for (const { id, failure } of failed) say(style.red(`FAILED ${id}: ${failure?.code}: ${failure?.message}`));
// llama-server has no logprob for some rare tokens, and a rollout that samples one is refused rather than recorded with a gap.
const isAccepted = ({ failure }: RolloutView) => failure?.code === 'backend-refused' && engine.dialect === 'llamacpp';
process.exitCode = failed.every(isAccepted) && sampled.length > 0 ? 0 : 1;

function makeQuestions(count: number): { readonly question: string; readonly answer: string }[] {
  return Array.from({ length: count }, (_, i) => {
    const [a, b] = [1 + ((i * 3) % 9), 1 + ((i * 5) % 7)];
    return { question: `What is ${a} + ${b}?`, answer: `${a + b}` };
  });
}

function makeSiblings(task: { readonly question: string; readonly answer: string }, group: number, size: number): SubmissionInput[] {
  return Array.from({ length: size }, (_, i) => ({
    id: `llm-${group}-${i}`,
    scenario: 'math',
    group: `q-${group}`,
    task,
    sampling: { max_tokens: 64, temperature: 0.6, top_p: 0.95 },
    limits: { max_context_tokens: 1024 },
    metadata: { question: task.question },
  }));
}

/** From the service's own metrics. */
async function readCounter(name: string): Promise<number> {
  const text = await (await fetch(`${service.url}/metrics`)).text();
  return [...text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gm'))].reduce((total, [, value]) => total + Number(value), 0);
}

function drawProgress(done: number, all: number): void {
  const filled = Math.round((done / all) * 40);
  const bar = `  ${style.green('█'.repeat(filled))}${style.dim('░'.repeat(40 - filled))} ${done}/${all} rollouts`;
  if (process.stdout.isTTY) process.stdout.write(`\r${bar}`);
  else if (done % 8 === 0) say(bar);
}
