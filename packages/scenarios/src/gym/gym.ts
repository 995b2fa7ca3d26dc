// The gym scenario: Python environments of others, inside the sandbox. The text of a turn is the action, the observation is the next
// message, and the tokens stay in our ledger. The reward is what the environment measured, step by step.

import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findParts } from '@millrace/base/parts';
import { definedOf, type Message, messageOf } from '@millrace/protocol';
import type { InitContext, Opening, Scenario, TaskTrial, TurnReply } from '../scenario.ts';
import { ScenarioError } from '../scenario-error.ts';
import { closeReply, Environment, EnvironmentError, resetReply, type StepReply, stepReply } from './environment.ts';
import type { GymConfig } from './gym-task.ts';
import { type GymTask, gymTask } from './gym-task.ts';

const hostPath = '/tmp/millrace-gym-host.py';
const packagesPath = '/workspace/.gym-packages';
const uploadMs = 120_000;

/** What one rollout knows of its environment. */
class Episode {
  readonly environment: Environment;
  readonly rewards: number[] = [];
  isDone = false;
  info: Readonly<Record<string, unknown>> = {};

  constructor(environment: Environment) {
    this.environment = environment;
  }
}

export function makeGymScenario({ packages }: GymConfig): Scenario<GymTask> {
  const folder = packages === undefined ? undefined : resolve(packages);
  return {
    name: 'gym',
    task: gymTask,
    sandbox: ({ image, env_vars }) => ({ env: env_vars, ...definedOf({ image }) }),
    prepare: {
      key: async ({ image }) => (folder === undefined || image !== undefined ? undefined : `${folder} ${(await stat(folder)).mtimeMs}`),
      async run({ task, sandbox, signal }) {
        if (folder !== undefined && task.image === undefined) await sandbox.upload(folder, packagesPath, { timeoutMs: uploadMs, signal });
      },
    },
    init: (context) => openEpisode(context, folder),
    lowestReward: ({ reward_range: [lowest] }) => lowest,
    highestReward: ({ reward_range: [, highest] }) => highest,

    async collect({ state, limits, signal }) {
      const { environment } = state as Episode;
      // An environment that cannot be closed has given its rewards before.
      const closed = environment.call({ op: 'close' }, closeReply, { timeoutMs: limits.tool_timeout_s * 1000, signal });
      const { metrics } = await closed.catch((error: unknown) => {
        if (error instanceof EnvironmentError) return { metrics: {} };
        throw error;
      });
      return Buffer.from(JSON.stringify(metrics));
    },

    async trial({ task, solution, openPrepared, limits, signal }) {
      const turns = solution === 'gold' ? task.solution : [''];
      if (turns === undefined) return { isRight: false, tests: {}, why: 'the task has no `solution`, so it cannot be checked' };
      return await playTurns({ task, limits, signal, sandbox: await openPrepared() }, turns, folder);
    },

    evaluate({ task, state, artifact }) {
      const { rewards, isDone, info } = state as Episode;
      const metrics = artifact.length === 0 ? {} : JSON.parse(artifact.toString('utf8'));
      return {
        reward: rewardOf(task, rewards),
        details: { steps: rewards.length, done: isDone, rewards: rewards.slice(-100), info, metrics },
      };
    },
  };
}

/** Rounded, so that six times a sixth is 1. */
function rewardOf({ reward, reward_range: [lowest, highest] }: GymTask, rewards: readonly number[]): number {
  const given = reward === 'last' ? (rewards.at(-1) ?? 0) : rewards.reduce((sum, one) => sum + one, 0);
  return Math.min(highest, Math.max(lowest, Number(given.toPrecision(12))));
}

/** Right if these turns, and not fewer of them, end the environment with the highest reward. */
async function playTurns(context: InitContext<GymTask>, turns: readonly string[], folder: string | undefined): Promise<TaskTrial> {
  const { task, limits, signal } = context;
  const { state } = await openEpisode(context, folder);
  const episode = state as Episode;
  await using _ = episode.environment;
  const time = { task, timeoutMs: limits.tool_timeout_s * 1000, signal };
  try {
    for (const text of turns) if (!episode.isDone) await step(episode, text, time);
  } catch (error) {
    if (!(error instanceof ScenarioError)) throw error;
    return { isRight: false, tests: {}, why: messageOf(error) };
  }
  const [reward, highest, played] = [rewardOf(task, episode.rewards), task.reward_range[1], episode.rewards.length];
  if (reward >= highest && played === turns.length) return { isRight: true, tests: {} };
  return { isRight: false, tests: {}, why: `after ${played} of ${turns.length} turns the reward is ${reward}; ${highest} is the highest` };
}

async function openEpisode({ task, sandbox, limits, signal }: InitContext<GymTask>, folder: string | undefined): Promise<Opening> {
  await sandbox.writeFile(hostPath, await readFile(fileURLToPath(findParts().gymHost)), { signal });
  const env: Record<string, string> = folder === undefined || task.image !== undefined ? {} : { PYTHONPATH: packagesPath };
  const episode = new Episode(await Environment.open(sandbox, [task.python, hostPath], env));
  const time = { timeoutMs: limits.init_timeout_s * 1000, signal };
  const { kind, args, seed, prompt, action } = task;
  const opened = episode.environment.call({ op: 'reset', task: { kind, env: task.env, args, seed, prompt, action } }, resetReply, time);
  const { messages } = await opened.catch((error: unknown) => {
    if (!(error instanceof EnvironmentError)) throw error;
    throw new ScenarioError('task', `the environment ${task.env} could not be started: ${messageOf(error)}`, { cause: error });
  });
  const system: Message[] = task.system === undefined ? [] : [{ role: 'system', content: task.system }];
  return {
    messages: [...system, ...messages],
    tools: [],
    state: episode,
    async respond({ text }, within) {
      const given = await step(episode, text, { task, ...within });
      return toResponse(given, text, task);
    },
  };
}

interface StepTime {
  readonly task: GymTask;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** An environment that an action breaks is blamed on the policy: otherwise an agent could exchange a bad reward for none. */
async function step(episode: Episode, action: string, { task, timeoutMs, signal }: StepTime): Promise<StepReply> {
  try {
    const given = await episode.environment.call({ op: 'step', action }, stepReply, { timeoutMs, signal });
    episode.rewards.push(given.reward);
    episode.isDone = given.done;
    episode.info = given.info;
    return given;
  } catch (error) {
    if (!(error instanceof EnvironmentError)) throw error;
    const at = episode.rewards.length + 1;
    throw new ScenarioError('policy', `the environment ${task.env} failed at step ${at}: ${messageOf(error)}`, { cause: error });
  }
}

function toResponse({ done, messages }: StepReply, text: string, { observation_role: role }: GymTask): TurnReply {
  if (done) return { finish: text };
  if (messages.length === 0) return [{ role, content: '' }];
  return messages.map((message) => (message.role === 'user' ? { ...message, role } : message));
}
