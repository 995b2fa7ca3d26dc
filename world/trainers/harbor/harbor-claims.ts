// Harbor's own trials, agents and verifier, from PyPI: whole rollouts of a real service as trials, and sandboxes of a tool server as its
// environments.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { openToolServer, readConfig } from '@millrace/server';
import { makeTempFolder } from '@millrace/testkit';
import { z } from 'zod';
import { makeGitImage } from '../../scenarios/python-image.ts';
import { checkSettings, settingsReport } from '../bed/settings.ts';
import { openAdapterTrial } from '../scene/adapter-trial.ts';
import { readLedger, turnsOf } from '../scene/ledger.ts';
import { findNewerPython } from '../scene/newer-python.ts';
import { runs } from '../scene/trial-service.ts';

const examples = join(import.meta.dirname, '../../../examples/harbor');

const turn = z.object({ prompt: z.array(z.number()), completion: z.array(z.number()), logprobs: z.array(z.number()) });
const trialReport = z.object({
  id: z.string(),
  rewards: z.record(z.string(), z.number()).nullable(),
  error: z.string().nullable(),
  details: z.array(z.array(turn)),
});
const report = z.object({
  rollouts: z.object({ right: trialReport, wrong: trialReport, branched: trialReport, unscored: trialReport }),
  environments: z.record(z.string(), z.object({ rewards: z.record(z.string(), z.number()).nullable(), error: z.string().nullable() })),
  settings: settingsReport,
});

/** A tool server whose images are this machine's own programs, and a folder for trials. */
interface ToolBed extends AsyncDisposable {
  readonly url: string;
  readonly trials: string;
}

let bed: Promise<ToolBed> | undefined;
after(async () => (await bed)?.[Symbol.asyncDispose]());

function openBed(): Promise<ToolBed> {
  bed ??= startBed();
  return bed;
}

async function startBed(): Promise<ToolBed> {
  await using stack = new AsyncDisposableStack();
  const { path } = stack.use(await makeTempFolder('hb'));
  const image = join(path, 'image');
  await makeGitImage(image);
  const config = readConfig(undefined, {
    data: join(path, 'data'),
    run: join(path, 'run'),
    'http.port': 0,
    'sandbox.driver': 'apptainer',
    'sandbox.images': join(path, 'images'),
    'sandbox.imageNames': { 'debian:12-slim': image, 'python:3.12-slim': image },
  });
  const { url } = stack.use(await openToolServer(config, { log: silentLog, sandboxes: 4, timeoutMs: 60_000, idleMs: 600_000 }));
  const owned = stack.move();
  return { url, trials: join(path, 'trials'), [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

const base = findNewerPython();
assert.ok(base);
const head = {
  trainer: 'Harbor',
  versions: { harbor: '0.24.0' },
  plug: "Import paths. Whole rollouts as trials: agent, verifier and environment. For Harbor's own agents: an environment, in sandboxes of `millrace tool-server`.",
  setup: [
    '# the rollout, its sandbox and its verifier are those of Millrace',
    'harbor run -p tasks/ --agent millrace_trainers.harbor:MillraceAgent \\',
    '  --env millrace_trainers.harbor:RolloutEnvironment --verifier millrace_trainers.harbor:MillraceVerifier',
    "# Harbor's own agents and verifier, in sandboxes of `npx millrace tool-server` with sandbox.driver apptainer",
    'harbor run -p tasks/ --agent oracle --env millrace_trainers.harbor:MillraceEnvironment',
  ].join('\n'),
  limits: [
    'A sandbox has one user, which owns every file: `user` of Harbor has no effect. docker-compose, GPUs and allowlists of hosts are refused.',
    'A file or folder that Harbor copies in or out has at most 64 MiB. Images need tar; where Harbor packs artifacts with exclusions, gzip too.',
    'Tasks with a separate verifier were not tried in MillraceEnvironment.',
  ],
};
const { prove, settle } = openAdapterTrial('harbor', head, {
  folder: import.meta.dirname,
  script: 'trials.py',
  python: { requirements: 'harbor.txt', torch: false, base },
  report,
  input: async () => ({ tasks: runs, examples, folder: (await openBed()).trials }),
  env: async () => ({ MILLRACE_TOOL_SERVER: (await openBed()).url }),
});

prove(
  ['rollouts', 'branches'],
  'the rollout details of a trial are the turns of the ledger, one detail for each branch',
  async ({ found, client, trial }) => {
    settle(checkSettings(trial.backend, found.settings));
    for (const { id, details, rewards } of [found.rollouts.right, found.rollouts.wrong, found.rollouts.branched]) {
      const { branches, reward } = await readLedger(client, id);
      assert.deepEqual(details.toReversed(), branches.map(turnsOf));
      assert.equal(rewards?.reward, reward);
    }
    const { right, wrong, branched } = found.rollouts;
    assert.deepEqual(
      [right, wrong, branched].map(({ rewards }) => rewards?.reward),
      [1, 0.25, 1],
    );
    assert.equal(branched.details.length, 2);
  },
);

prove('unscored', 'a rollout without a reward is a trial with an exception that names the reason, and no reward', async ({ found }) => {
  const { rewards, error, details } = found.rollouts.unscored;
  assert.deepEqual([rewards, details], [null, []]);
  assert.match(error ?? '', /evaluate-failed.*no ruler today/);
});

prove(
  'sandboxes',
  "Harbor's own oracle passes and its empty agent fails Harbor's own verifier, on an image built from its Dockerfile without Docker and without root",
  async ({ found }) => {
    const rewards = Object.fromEntries(
      Object.entries(found.environments).map(([name, { rewards, error }]) => [name, rewards?.reward ?? error]),
    );
    assert.deepEqual(rewards, { 'greeting oracle': 1, 'greeting nop': 0 });
  },
);
