// The shell scenario: a setup script, an instruction and a check script. The check runs in a fresh sandbox that holds the agent's
// /workspace and nothing else from the agent.

import { definedOf, RolloutError } from '@millrace/protocol';
import { z } from 'zod';
import type { Scenario } from './scenario.ts';
import { Prompts } from './tools/prompts.ts';
import { labelOf, type ToolChoice, toolChoice } from './tools/tool-names.ts';
import { examineCheck } from './verifier/examine-check.ts';
import { renderFinding } from './verifier/lint/lint-check.ts';
import { runCheck } from './verifier/run-check.ts';
import { unpackFolder } from './verifier/unpack-folder.ts';
import { describeEnd } from './verifier/verifier.ts';

const workspace = '/workspace';
const maxArtifactBytes = 32 << 20;
const maxArtifactEntries = 50_000;
/** In milliseconds of each second: the rest is for the sandboxes of the check. */
const checkShare = 900;

const bashCheck = z
  .string()
  .min(1)
  .refine((script) => !script.includes('REWARD_FILE'), 'there is no REWARD_FILE: report a number with `reward NUMBER`')
  .superRefine(async (script, { addIssue }) => {
    for (const finding of await examineCheck(script))
      if (finding.severity === 'error') addIssue({ code: 'custom', message: renderFinding(finding) });
  });

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
    .union([bashCheck, z.strictObject({ python: z.string().min(1) })])
    .describe(
      'A bash script, or `{python: …}`, that runs in /workspace after the agent ends. Exit code 0 is the highest reward, any other exit code the lowest; `reward NUMBER` reports a number instead. It runs programs of the agent as `judged COMMAND`. A script that an agent could forge is refused.',
    ),
  reward_range: z
    .tuple([z.number(), z.number()])
    .refine(([lowest, highest]) => lowest < highest, 'the lowest reward must come first')
    .default([0, 1])
    .describe('The lowest and the highest reward. A number outside of it becomes the nearest of the two.'),
  env: z.record(z.string(), z.string()).default({}),
  tools: toolChoice.min(1).default(['bash', 'finish']),
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

  warnings: async ({ check }) =>
    typeof check === 'string' ? (await examineCheck(check)).map((finding) => `check: ${renderFinding(finding)}`) : [],

  prepare: {
    key: ({ setup, share_setup }) => (share_setup && setup !== '' ? setup : undefined),
    async run({ task, sandbox, limits, signal }) {
      if (task.setup === '') return;
      // A file outside the workspace, so that the script can read standard input and is not part of what is judged.
      await sandbox.writeFile('/tmp/millrace-script', task.setup, { mode: 0o700, signal });
      const options = { cwd: workspace, timeoutMs: limits.init_timeout_s * 1000, signal };
      const result = await sandbox.exec(['bash', '/tmp/millrace-script'], options);
      if (result.exitCode !== 0) throw new RolloutError('init-failed', `the setup script ${describeEnd(result)}`);
    },
  },

  async init({ task, prompts = new Prompts() }) {
    return {
      messages: [
        { role: 'system', content: prompts.render('shell', renderShellValues(task.tools, workspace)) },
        { role: 'user', content: task.instruction },
      ],
      tools: task.tools,
    };
  },

  async collect({ sandbox, signal }) {
    const limits = { maxBytes: maxArtifactBytes, maxEntries: maxArtifactEntries };
    return (await sandbox.readFolder(workspace, { ...limits, stopPrograms: true, signal })).archive;
  },

  lowestReward: ({ reward_range: [lowest] }) => lowest,
  highestReward: ({ reward_range: [, highest] }) => highest,

  async evaluate({ task, end, artifact, openSandbox, limits, signal }) {
    const sandbox = await openSandbox();
    const { skipped } = await unpackFolder(sandbox, artifact, { signal });
    return runCheck(sandbox, {
      ...(typeof task.check === 'string' ? { script: task.check } : { script: task.check.python, language: 'python' }),
      openSandbox,
      rewardRange: task.reward_range,
      env: { ANSWER: end.answer },
      skipped,
      timeoutMs: limits.evaluate_timeout_s * checkShare,
      signal,
    });
  },
};

/** What the prompt `shell` names: the folder in which the agent starts, its tools, and how it ends. */
export function renderShellValues(tools: readonly ToolChoice[], workspace: string): Record<string, string> {
  const named = tools.filter((name) => name !== 'finish' && name !== 'submit').map(labelOf);
  const end = tools.find((name) => name === 'finish' || name === 'submit');
  return {
    workspace,
    use: named.length === 0 ? '' : ` Use the ${named.join(', ')} tool${named.length === 1 ? '' : 's'};`,
    ending: end === undefined ? ' say so when you are done.' : ` call ${labelOf(end)} when you are done.`,
  };
}
