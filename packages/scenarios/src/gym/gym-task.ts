// A task of the gym scenario: one Python environment, and how it is made.

import { message } from '@millrace/protocol';
import { z } from 'zod';

const gymKinds = ['gymnasium', 'gem', 'skyrl', 'openenv'] as const;

export const gymTask = z
  .strictObject({
    kind: z
      .enum(gymKinds)
      .describe(
        'How the environment is called: reset and step (`gymnasium`, `gem`), init, step and close (`skyrl`), or an `openenv` class.',
      ),
    env: z
      .string()
      .min(1)
      .describe('Its registered name, such as `game:GuessTheNumber-v0`, or `package.module:Class`. With `openenv` always the latter.'),
    args: z
      .record(z.string(), z.unknown())
      .default({})
      .describe('Arguments of the environment. With `skyrl`, `extras` in it are the extras, and the rest is the configuration.'),
    seed: z.int().optional().describe('Passed to `reset`, for `gymnasium`, `gem` and `openenv`.'),
    prompt: z
      .array(message.pick({ role: true, content: true }))
      .default([])
      .describe('With `skyrl`: the messages that `init` gets.'),
    action: z
      .string()
      .optional()
      .describe('With `openenv`: the class of an action, `package.module:Class`, where the environment does not name it.'),
    system: z.string().optional().describe('A system message before the first observation.'),
    observation_role: z
      .enum(['user', 'tool'])
      .default('user')
      .describe('The role of the messages that observations after the first become.'),
    reward: z.enum(['sum', 'last']).default('sum').describe('The sum of the rewards of all steps, or the reward of the last step.'),
    reward_range: z
      .tuple([z.number(), z.number()])
      .refine(([lowest, highest]) => lowest < highest, 'the lowest reward must come first')
      .default([0, 1])
      .describe('The lowest and the highest reward. The lowest is the reward of an agent that broke its environment.'),
    solution: z
      .array(z.string())
      .min(1)
      .optional()
      .describe('The turns of an agent that gets the highest reward, for `millrace task check`. Never shown to the agent.'),
    python: z.string().min(1).default('python3').describe('The Python in the sandbox that has the packages of the environment.'),
    image: z.string().min(1).optional().describe('The image of the sandbox, with these packages. Needs `sandbox.driver` apptainer.'),
    env_vars: z.record(z.string(), z.string()).default({}).describe('Variables of the sandbox.'),
  })
  .superRefine((task, context) => {
    const fault = (path: string, text: string) => context.addIssue({ code: 'custom', path: [path], message: text });
    if (task.kind === 'skyrl' && task.prompt.length === 0) fault('prompt', 'a skyrl environment needs the messages that it starts with');
    if (task.kind !== 'skyrl' && task.prompt.length > 0) fault('prompt', 'only for `skyrl`: other environments start with an observation');
    if (task.kind === 'openenv' && !task.env.includes(':')) fault('env', 'name the class of the environment, as package.module:Class');
  });

export type GymTask = z.infer<typeof gymTask>;

export const gymConfig = z.strictObject({
  packages: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Folder with the Python packages of gym environments, as `pip install --target` fills it. It is copied into the sandboxes of gym tasks that name no image, once per machine for all rollouts of groups.',
    ),
});

export type GymConfig = z.infer<typeof gymConfig>;
