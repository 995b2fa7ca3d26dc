// The shell scenario: a setup script, an instruction and a check script. The check runs in a fresh sandbox that holds the agent's
// /workspace and nothing else from the agent.

import { definedOf, RolloutError } from '@millrace/protocol';
import { z } from 'zod';
import type { ExecResult, Sandbox } from '../sandbox/sandbox.ts';
import type { Scenario } from './scenario.ts';

const workspace = '/workspace';
const maxArtifactBytes = 32 << 20;

const shellTask = z.strictObject({
  instruction: z.string().min(1),
  setup: z.string().default('').describe('A bash script that runs in /workspace before the agent starts.'),
  share_setup: z
    .boolean()
    .default(true)
    .describe(
      'Run the setup once for all rollouts of groups with the same setup, image and environment; each starts with the files that it left in /workspace (with an image: anywhere except /tmp). Set it to false if the setup starts processes or must differ between rollouts.',
    ),
  check: z
    .string()
    .min(1)
    .describe(
      'A bash script that runs in /workspace after the agent ends. Exit code 0 is reward 1, any other exit code is reward 0; a number written to $REWARD_FILE is the reward instead.',
    ),
  env: z.record(z.string(), z.string()).default({}),
  tools: z
    .array(z.enum(['bash', 'ipython', 'str_replace_editor', 'finish']))
    .min(1)
    .default(['bash', 'finish']),
  image: z
    .string()
    .min(1)
    .optional()
    .describe(
      'The image of the sandbox: a SIF file, an unpacked directory, docker://…, docker-archive:FILE or a .def file. Needs `sandbox.driver` apptainer.',
    ),
});

type ShellTask = z.infer<typeof shellTask>;

export const shellScenario: Scenario<ShellTask> = {
  name: 'shell',
  task: shellTask,
  sandbox: ({ env, image }) => ({ env, ...definedOf({ image }) }),

  prepare: {
    key: ({ setup, share_setup }) => (share_setup && setup !== '' ? setup : undefined),
    async run({ task, sandbox, limits, signal }) {
      if (task.setup === '') return;
      const result = await runScript(sandbox, task.setup, { timeoutMs: limits.init_timeout_s * 1000, signal });
      if (result.exitCode !== 0) throw new RolloutError('init-failed', `the setup script ${describeEnd(result)}`);
    },
  },

  async init({ task }) {
    return {
      messages: [
        { role: 'system', content: renderSystem(task.tools) },
        { role: 'user', content: task.instruction },
      ],
      tools: task.tools,
    };
  },

  async collect({ sandbox, signal }) {
    const options = { timeoutMs: 60_000, capBytes: maxArtifactBytes, signal };
    const packed = await sandbox.exec(['tar', '--create', '--file=-', '--directory', workspace, '.'], options);
    if (packed.cutBytes > 0) throw new RolloutError('artifact-too-large', `${workspace} holds more than ${maxArtifactBytes >> 20} MiB`);
    if (packed.exitCode !== 0) throw new RolloutError('run-failed', `${workspace} could not be copied out: tar ${describeEnd(packed)}`);
    return packed.stdout;
  },

  async evaluate({ task, end, artifact, openSandbox, limits, signal }) {
    const sandbox = await openSandbox();
    const unpack = ['tar', '--extract', '--file=-', '--directory', workspace, '--no-same-owner'];
    const unpacked = await sandbox.exec(unpack, { stdin: artifact, timeoutMs: 60_000, signal });
    if (unpacked.exitCode !== 0)
      throw new RolloutError('evaluate-failed', `the agent's files could not be unpacked: tar ${describeEnd(unpacked)}`);
    const env = { ANSWER: end.answer, REWARD_FILE: '/tmp/reward' };
    const result = await runScript(sandbox, task.check, { env, timeoutMs: limits.evaluate_timeout_s * 1000, signal });
    return { reward: await readReward(sandbox, result, signal), details: { exit_code: result.exitCode ?? -1, output: tailOf(result) } };
  },
};

function renderSystem(tools: ShellTask['tools']): string {
  const named = tools.filter((name) => name !== 'finish');
  const use = named.length === 0 ? '' : ` Use the ${named.join(', ')} tool${named.length === 1 ? '' : 's'};`;
  const finish = tools.includes('finish') ? ' call finish when you are done.' : ' say so when you are done.';
  return `You work in a Linux shell, in ${workspace}.${use}${finish}`;
}

interface ScriptOptions {
  readonly env?: Record<string, string>;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** The script is a file outside the workspace, so that it can read standard input and is not part of what is judged. */
async function runScript(sandbox: Sandbox, script: string, options: ScriptOptions): Promise<ExecResult> {
  await sandbox.writeFile('/tmp/millrace-script', script, { mode: 0o700, signal: options.signal });
  return sandbox.exec(['bash', '/tmp/millrace-script'], { cwd: workspace, ...options });
}

/** A check that could not run is a failure of the verifier, never a reward of 0. */
async function readReward(sandbox: Sandbox, result: ExecResult, signal: AbortSignal): Promise<number> {
  const { exitCode } = result;
  if (exitCode === undefined || result.timedOut || exitCode >= 126)
    throw new RolloutError('evaluate-failed', `the check script ${describeEnd(result)}`);
  const written = await readRewardFile(sandbox, signal);
  if (written === undefined) return exitCode === 0 ? 1 : 0;
  const reward = Number(written);
  if (written === '' || !Number.isFinite(reward))
    throw new RolloutError('evaluate-failed', `the check script wrote ${JSON.stringify(written)} as the reward`);
  return reward;
}

async function readRewardFile(sandbox: Sandbox, signal: AbortSignal): Promise<string | undefined> {
  try {
    return (await sandbox.readFile('/tmp/reward', { maxBytes: 1024, signal })).toString('utf8').trim();
  } catch (error) {
    if (error instanceof RolloutError && error.code === 'not-found') return undefined;
    throw error;
  }
}

function describeEnd(result: ExecResult): string {
  const how = result.timedOut
    ? 'timed out'
    : result.exitCode === undefined
      ? `was killed by ${result.signal}`
      : `failed with exit code ${result.exitCode}`;
  const output = tailOf(result);
  return output === '' ? how : `${how}: ${output}`;
}

function tailOf(result: ExecResult): string {
  return Buffer.concat([result.stdout, result.stderr]).subarray(-2000).toString('utf8').trim();
}
