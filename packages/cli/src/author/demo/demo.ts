// `millrace demo`: the real service with a scripted backend, on this machine, without a model and without a GPU. Sixty rollouts run, the
// shell ones in real sandboxes, one worker is killed on the way, and at the end every token is compared with what the backend sent.

import { readdir } from 'node:fs/promises';
import { silentLog } from '@millrace/base/log';
import { type Client, openClient } from '@millrace/client';
import type { RolloutView, Trajectory } from '@millrace/protocol';
import { findCgroups, probeBubblewrap } from '@millrace/sandbox';
import { openServer, Supervisor } from '@millrace/server';
import type { Arguments, Command, Io } from '../../command/command.ts';
import { openPaint, wantsColor } from '../../terminal/text.ts';
import { openLocalService } from '../local/local-service.ts';
import { openScriptedBackend, type ScriptedBackend } from '../local/scripted-backend.ts';
import { renderRollouts, renderTrajectory } from './summary.ts';
import { demoScript, makeSubmissions, siblings } from './tasks.ts';
import { findWrongTokens } from './token-check.ts';

export const demoCommand: Command = {
  name: 'demo',
  summary:
    'Runs 60 rollouts in sandboxes on this machine with a scripted backend (no model, no GPU), and checks every token. Takes half a minute.',
  options: {},
  examples: ['millrace demo'],
  run: runDemo,
};

/** After this many results, a worker is killed. */
const killAfter = 20;

async function runDemo(_args: Arguments, io: Io): Promise<number> {
  const probe = await probeBubblewrap();
  if (!probe.ok) {
    io.stderr.write(`millrace: the demo runs in sandboxes, and ${probe.reason}\n  → ${probe.remedy}\n`);
    return 1;
  }
  const cancel = new AbortController();
  const release = io.onInterrupt(() => cancel.abort(new Error('interrupted')));
  try {
    return await play(io, cancel.signal);
  } finally {
    release();
  }
}

async function play(io: Io, signal: AbortSignal): Promise<number> {
  const say = (line = '') => void io.stdout.write(`${line}\n`);
  const startedAt = performance.now();
  await using local = await openLocalService({ workers: 2, 'pipeline.initSlots': 4, 'pipeline.runSlots': 12 });
  await using backend = await openScriptedBackend({ script: demoScript, model: local.model, latencyMs: 100 });
  await findCgroups({ enter: true });
  const { config } = local;
  say('Starting the service with two workers, and a scripted backend that speaks the token API of vLLM …');
  await using server = await openServer(config, { log: silentLog });
  await using workers = new Supervisor({ count: 2, config, store: server.store, log: silentLog, logFormat: 'none' });
  await workers.started;
  await using client = openClient({ url: await server.listen() });
  await client.backends.join({ id: 'scripted', url: backend.url });

  const submissions = makeSubmissions();
  say(`Submitting ${submissions.length} rollouts: ${submissions.length / siblings} tasks, ${siblings} siblings each …`);
  const { views, killed } = await collect(client, { workers, io, signal, submissions });
  const trajectories = await Promise.all(views.map(({ id }) => client.trajectory(id)));
  await workers[Symbol.asyncDispose]();
  const leftovers = (await readdir(config.run)).filter((name) => name.startsWith('sb-'));
  for (const line of [...renderRollouts(views), '', ...renderTrajectory(trajectories.find(({ rolloutId }) => rolloutId === 'demo-8-0'))])
    say(line);
  say();
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  return report({ views, trajectories, backend, killed, leftovers, seconds, wanted: submissions.length }, io);
}

interface Collecting {
  readonly workers: Supervisor;
  readonly io: Io;
  readonly signal: AbortSignal;
  readonly submissions: ReturnType<typeof makeSubmissions>;
}

async function collect(client: Client, { workers, io, signal, submissions }: Collecting) {
  const views: RolloutView[] = [];
  let killed: number | undefined;
  for await (const view of await client.run(submissions, { signal })) {
    views.push(view);
    drawProgress(io, views.length, submissions.length);
    if (views.length !== killAfter) continue;
    [killed] = workers.pids;
    if (killed !== undefined) process.kill(killed, 'SIGKILL');
  }
  io.stdout.write(io.stdout.isTTY === true ? '\r\x1b[K\n' : '\n');
  return { views, killed };
}

interface DemoOutcome {
  readonly views: readonly RolloutView[];
  readonly trajectories: readonly Trajectory[];
  readonly backend: ScriptedBackend;
  readonly killed: number | undefined;
  readonly leftovers: readonly string[];
  readonly seconds: string;
  readonly wanted: number;
}

/** Returns 0 only when every rollout is done, every token is exact and no sandbox is left. */
function report({ views, trajectories, backend, killed, leftovers, seconds, wanted }: DemoOutcome, io: Io): number {
  const paint = openPaint(wantsColor(io.stdout, io.env));
  const mark = (isGood: boolean, text: string) => `  ${isGood ? paint('green', '✔') : paint('red', '✖')} ${text}`;
  const wrong = trajectories.flatMap((trajectory) => findWrongTokens(trajectory, backend));
  const failed = views.filter((view) => view.state !== 'done');
  const again = views.filter((view) => view.attempt > 1).length;
  const lost = wanted - views.length;
  const tokens = views.reduce((total, view) => total + (view.result?.tokens.sampled ?? 0), 0).toLocaleString('en');
  const isGood = failed.length + wrong.length + leftovers.length + lost === 0;
  const lines = [
    mark(lost === 0, `Worker ${killed} was killed with SIGKILL: ${again} rollouts began again on the other one, ${lost} were lost.`),
    mark(wrong.length === 0, `${tokens} sampled tokens compared with what the backend sent: ${wrong.length} differ in id or logprob.`),
    mark(leftovers.length === 0, `${leftovers.length} sandboxes left behind.`),
    ...failed.map(({ id, failure }) => mark(false, `${id} failed: ${failure?.blame} ${failure?.code}: ${failure?.message}`)),
    ...wrong.map((where) => mark(false, `wrong token in ${where}`)),
    '',
    isGood
      ? `All good, in ${seconds} s. Next: millrace new scenario my-task, or millrace serve --help`
      : `Something went wrong, in ${seconds} s.`,
  ];
  io.stdout.write(`${lines.join('\n')}\n`);
  return isGood ? 0 : 1;
}

function drawProgress(io: Io, done: number, all: number): void {
  const columns = 40;
  const filled = Math.round((done / all) * columns);
  const bar = `  ${'█'.repeat(filled)}${'░'.repeat(columns - filled)} ${done}/${all} rollouts`;
  if (io.stdout.isTTY === true) io.stdout.write(`\r${bar}`);
  else if (done % killAfter === 0) io.stdout.write(`${bar}\n`);
}
