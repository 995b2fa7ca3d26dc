// `millrace try scenario.ts`: one task of a scenario, with a scripted policy, in a real sandbox. It runs the real pipeline in this
// process, without a service, a backend or a model of the user's.

import { readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { silentLog } from '@millrace/base/log';
import { openClient } from '@millrace/client';
import { messageOf, RolloutError, type RolloutView, type Trajectory } from '@millrace/protocol';
import { findCgroups, probeApptainer, probeBubblewrap } from '@millrace/sandbox';
import { loadScenarios, type Scenarios } from '@millrace/scenarios';
import { openServer, openWorker, type ServiceConfig } from '@millrace/server';
import { type Arguments, type Command, type Io, UsageError } from '../../command/command.ts';
import { openPaint, wantsColor } from '../../terminal/text.ts';
import { type LocalService, openLocalService } from '../local/local-service.ts';
import { openScriptedBackend } from '../local/scripted-backend.ts';
import { readPolicy, readTask, type TryPolicy } from './try-input.ts';
import { renderMessages, renderOutcome } from './try-render.ts';

export const tryCommand: Command = {
  name: 'try',
  summary: 'Runs one task of a scenario in a real sandbox with a scripted policy: no service, no backend, no model.',
  positional: '<scenario>',
  options: {
    task: {
      type: 'string',
      value: 'TASK',
      describe: 'The task as JSON, or a file whose first line is one; by default tasks.jsonl next to the scenario.',
    },
    policy: {
      type: 'string',
      value: 'FILE',
      describe:
        'What the agent says, one turn per line: {"text": "…", "tool_calls": [{"name": "bash", "arguments": {…}}]}; by default policy.jsonl next to the scenario.',
    },
    config: { type: 'string', value: 'FILE', describe: 'Configuration file in JSON, for the sandbox driver and its limits.' },
  },
  examples: [
    'millrace try scenario.ts',
    'millrace try scenario.py',
    `millrace try scenario.ts --task '{"text": "a b", "words": 2}' --policy policy.jsonl`,
  ],
  run: runTry,
};

async function runTry(args: Arguments, io: Io): Promise<number> {
  const [path = ''] = args.positionals;
  checkScenarioPath(path);
  const log = {
    ...silentLog,
    info: (event: string, { line }: Readonly<Record<string, unknown>> = {}) => event === 'scenario-output' && io.stderr.write(`${line}\n`),
  };
  const scenarios = await loadScenarios([path], { python: { log } });
  const task = await readTask(args.text('task'), path);
  const policy = await readPolicy(args.text('policy'), path);
  const name = scenarios.names().at(-1) ?? '';
  await using local = await openLocalService({ scenarios: [resolve(path)], 'sandbox.warm.sandboxes': 0 }, args.text('config'));
  if (scenarios.get(name)?.sandbox !== undefined && !(await canRun(local.config, io))) return 1;
  io.stdout.write(`scenario  ${name} (${path})\ntask      ${JSON.stringify(task.task)} (${task.from})\npolicy    ${policy.from}\n\n`);
  const cancel = new AbortController();
  const release = io.onInterrupt(() => cancel.abort(new Error('interrupted')));
  try {
    const ended = await runOne({ local, scenarios, policy, submission: { scenario: name, task: task.task }, signal: cancel.signal });
    return show(ended, policy, io);
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    throw new Error(`${error.code}: ${messageOf(error).replaceAll('rollouts[0].', '')}`);
  } finally {
    release();
  }
}

function checkScenarioPath(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) throw new UsageError(`there is no file ${path}; give the path of a scenario's .ts, .js or .py file`);
  if (!found.isDirectory()) return;
  const inside = readdirSync(path).find((name) => /^scenario\.(ts|js|py)$/.test(name));
  throw new UsageError(
    `${path} is a folder; ${inside === undefined ? "give the path of a scenario's .ts, .js or .py file" : `did you mean ${join(path, inside)}?`}`,
  );
}

async function canRun({ sandbox }: ServiceConfig, io: Io): Promise<boolean> {
  const probe = sandbox.driver === 'bubblewrap' ? await probeBubblewrap() : await probeApptainer();
  if (!probe.ok) io.stderr.write(`millrace: the scenario needs a sandbox, and ${probe.reason}\n  → ${probe.remedy}\n`);
  return probe.ok;
}

interface TryRun {
  readonly local: LocalService;
  readonly scenarios: Scenarios;
  readonly policy: TryPolicy;
  readonly submission: { readonly scenario: string; readonly task: unknown };
  readonly signal: AbortSignal;
}

interface Ended {
  readonly view: RolloutView;
  /** Absent when the rollout ended before the agent's first turn. */
  readonly trajectory: Trajectory | undefined;
}

async function runOne({ local, scenarios, policy, submission, signal }: TryRun): Promise<Ended> {
  const script = ({ turn }: { readonly turn: number }) => policy.turns[turn] ?? '';
  await using backend = await openScriptedBackend({ script, model: local.model });
  await findCgroups({ enter: true });
  const options = { log: silentLog, scenarios };
  await using server = await openServer(local.config, options);
  await using client = openClient({ url: await server.listen() });
  await client.backends.join({ url: backend.url });
  await client.submit([{ ...submission, task: submission.task as Record<string, unknown>, id: 'try', limits: { max_retries: 0 } }]);
  await using _worker = await openWorker(local.config, options);
  const view = await client.wait('try', { signal });
  const trajectory = await client.trajectory('try').catch(() => undefined); // there is none where init failed
  return { view, trajectory };
}

function show({ view, trajectory }: Ended, policy: TryPolicy, io: Io): number {
  const paint = openPaint(wantsColor(io.stdout, io.env));
  const asked = view.result?.turns ?? 0;
  const short = asked > policy.turns.length && policy.turns.length > 0;
  const lines = [
    ...(trajectory === undefined ? [] : [...renderMessages(trajectory, paint), '']),
    ...(short ? [`The policy has ${policy.turns.length} turns and the agent was asked for ${asked}; it said nothing in the rest.`] : []),
    ...renderOutcome(view, paint),
  ];
  io.stdout.write(`${lines.join('\n')}\n`);
  return view.state === 'done' ? 0 : 1;
}
