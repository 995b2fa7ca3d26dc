// The reward-server scenario: tasks that only a reward server of ProRL Agent can score. It exists where the configuration names such
// servers; one that gives no score is a verifier that could not measure, never a zero, and one that cannot be reached is asked again.

import { message, messageOf, RolloutError } from '@millrace/protocol';
import { z } from 'zod';
import type { Scenario } from './scenario.ts';
import { needsSandbox, toolChoice } from './tools/tool-names.ts';

const rewardTask = z.strictObject({
  messages: z.array(message).min(1).describe('What the agent starts with.'),
  data_source: z.string().min(1).describe('Sent to the server, which chooses its scorer by it.'),
  ground_truth: z.unknown().optional(),
  entry: z.unknown().optional().describe('For reasoning_gym: the entry of the task.'),
  reasoning_task: z.unknown().optional(),
  tools: toolChoice.default([]),
});

type RewardTask = z.infer<typeof rewardTask>;

/** One number, or a list that starts with one. */
const reply = z.looseObject({ score: z.union([z.number(), z.boolean(), z.tuple([z.number()]).rest(z.unknown())]) });

/** `servers`: host names, `host:port`, or whole addresses. They take turns. */
export function makeRewardScenario(servers: readonly string[]): Scenario<RewardTask> {
  let next = 0;
  return {
    name: 'reward-server',
    task: rewardTask,
    fromInstance,
    sandbox: ({ tools }) => (needsSandbox(tools) ? {} : undefined),
    init: async ({ task }) => ({ messages: task.messages, tools: task.tools }),
    async evaluate({ task, end, signal }) {
      const server = servers[next++ % servers.length] ?? '';
      const reward = await askServer(server, task, { answer: end.answer, signal });
      return { reward, details: { reward_server: server } };
    },
  };
}

async function askServer(server: string, task: RewardTask, { answer, signal }: { answer: string; signal: AbortSignal }): Promise<number> {
  const isGym = task.data_source === 'reasoning_gym';
  const url = toUrl(server, isGym ? { port: 8288, path: '/score' } : { port: 8388, path: '/compute_score' });
  // Its scorers read what comes after the reasoning, and take a text without any for cut off.
  const solution = answer.includes('</think>') ? answer : `<think>\n\n</think>\n${answer}`;
  const body = isGym
    ? { answer, entry: task.entry, task: task.reasoning_task }
    : { solution_str: solution, ground_truth: task.ground_truth, data_source: task.data_source };
  const { status, text } = await post(url, body, signal);
  try {
    if (status >= 300) throw new Error(`it answered ${status}: ${text.slice(0, 200)}`);
    const { score } = reply.parse(JSON.parse(text));
    return Number(Array.isArray(score) ? score[0] : score);
  } catch (error) {
    throw new RolloutError('evaluate-failed', `the reward server ${url} gave no score: ${messageOf(error)}`, { cause: error });
  }
}

/** All rollouts share the server: who is cut off while it restarts has not earned that. */
async function post(url: string, body: unknown, signal: AbortSignal): Promise<{ readonly status: number; readonly text: string }> {
  try {
    const given = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal,
    });
    return { status: given.status, text: await given.text() };
  } catch (error) {
    signal.throwIfAborted();
    throw new RolloutError('sandbox-failed', `the reward server ${url} cannot be reached: ${messageOf(error)}`, { cause: error });
  }
}

function toUrl(server: string, { port, path }: { readonly port: number; readonly path: string }): string {
  if (/^https?:\/\//.test(server)) return server.replace(/\/+$/, '') + path;
  return `http://${server}${/:\d+$/.test(server) ? '' : `:${port}`}${path}`;
}

const prompt = z.array(message.pick({ role: true, content: true })).min(1);
const extra = z.looseObject({ reward_model: z.looseObject({ entry: z.unknown(), reasoning_task: z.unknown() }) });

function fromInstance(instance: Readonly<Record<string, unknown>>): unknown {
  const messages = prompt.safeParse(instance.prompt);
  const text = instance.prompt ?? instance.question ?? instance.problem;
  const { data: gym } = extra.safeParse(instance.extra_info);
  const truth = z.looseObject({ ground_truth: z.unknown() }).safeParse(instance.reward_model).data?.ground_truth;
  return {
    messages: messages.success ? messages.data : [{ role: 'user', content: text }],
    data_source: instance.data_source,
    ...(truth === undefined ? {} : { ground_truth: truth }),
    ...(gym ? { entry: gym.reward_model.entry, reasoning_task: gym.reward_model.reasoning_task } : {}),
  };
}
