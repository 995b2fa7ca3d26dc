// A real service with a fake backend as its LLM, and the trainer's process that samples from it. What each sibling does is part of its
// task: `What is 2 + 3? [right, wrong, branched, unscored]` is the plan for members 0 to 3 of the group, and then from the start. `branched` answers
// rightly in its second turn, `misled` wrongly; both have two branches. `lost` fails before its first turn.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type FakeBackend, openFakeBackend, type Policy, qwen3Folder, TestService } from '@millrace/testkit';

interface TrainerService extends AsyncDisposable {
  readonly url: string;
  readonly backend: FakeBackend;
  readonly service: TestService;
}

export async function openTrainerService(): Promise<TrainerService> {
  await using stack = new AsyncDisposableStack();
  const backend = stack.use(
    await openFakeBackend({ policy: planned, devMode: true, routedExperts: true, samplingMask: true, isProcessed: true }),
  );
  const scenarios = [join(import.meta.dirname, 'scenario.ts')];
  const service = stack.use(await TestService.open({ workers: 1, tokenizer: qwen3Folder(), scenarios, pipeline: { runSlots: 16 } }));
  await service.client.backends.join({ url: backend.url });
  const owned = stack.move();
  return { url: service.url, backend, service, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** The last number of a rollout's id is its place in its group. */
const planned: Policy = ({ turn, sessionId = '', opening }) => {
  const [, sum = '0', plan = 'right'] = /= (\d+)\? \[([a-z, ]+)\]/.exec(opening()) ?? [];
  const all = plan.split(', ');
  const course = all[Number(/(\d+)$/.exec(sessionId)?.[1] ?? 0) % all.length];
  const isBranched = course === 'branched' || course === 'misled';
  if (isBranched && turn === 0) return { text: '<think>\nLet me see.\n</think>\n\nwait' };
  if (course === 'unscored') return { text: 'unmeasurable' };
  return { text: course === 'right' || course === 'branched' ? sum : `not ${sum}` };
};

export interface TrainerRun {
  readonly python: string;
  readonly script: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** What it gets as JSON on its standard input. */
  readonly input?: unknown;
}

/** Runs a script with our two packages on its path and MILLRACE_URL set. Returns the JSON of the last line that it prints. */
export async function runTrainer(url: string, { python, script, args = [], env = {}, input }: TrainerRun): Promise<unknown> {
  const sources = ['trainers-python', 'client-python'].map((name) => join(import.meta.dirname, '../../../packages', name, 'src'));
  sources.push(import.meta.dirname);
  const child = spawn(python, [script, ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      ...process.env,
      PYTHONPATH: sources.join(':'),
      PYTHONDONTWRITEBYTECODE: '1',
      MILLRACE_URL: url,
      MILLRACE_SCENARIO: 'sums',
      // Nothing may be fetched, reported or put on a GPU.
      CUDA_VISIBLE_DEVICES: '',
      HF_HUB_OFFLINE: '1',
      TOKENIZERS_PARALLELISM: 'false',
      WANDB_MODE: 'disabled',
      ...env,
    },
  });
  child.stdin.end(JSON.stringify(input ?? null));
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  if (code !== 0) throw new Error(`${script} ended with exit code ${code}:\n${stdout.slice(-2000)}\n${stderr.slice(-6000)}`);
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? 'null');
}
