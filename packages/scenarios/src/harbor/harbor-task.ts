// The task of the harbor scenario: the path of a task folder, which is read when the task is submitted and when it is run. If the folder
// has changed in between, the task is refused.

import { isAbsolute } from 'node:path';
import { definedOf, describeIssues, messageOf } from '@millrace/protocol';
import { leastMemoryMiB, type SandboxSpec } from '@millrace/sandbox';
import { z } from 'zod';
import { mcpChoice, type ToolChoice, toolChoice } from '../tools/tool-names.ts';
import { digestTask, type EnvironmentImage, readTaskFolder, type TaskFolder } from './task-folder.ts';
import { fillVariables, type HarborEnvironment } from './task-toml.ts';

const fields = z.strictObject({
  folder: z
    .string()
    .refine(isAbsolute, 'expected an absolute path')
    .describe('The folder with task.toml, at the same path for the server and its workers.'),
  digest: z.string().optional().describe('The digest of the folder when it was submitted. A folder that has changed since is refused.'),
  env: z.record(z.string(), z.string()).default({}).describe('Values of variables that task.toml asks for.'),
  tools: toolChoice.min(1).default(['bash', 'finish']),
  reward_range: z
    .tuple([z.number(), z.number()])
    .refine(([lowest, highest]) => lowest < highest, 'the lowest reward must come first')
    .default([0, 1])
    .describe('The lowest and the highest reward. A number outside of it becomes the nearest of the two.'),
});

type TaskFields = z.infer<typeof fields>;

export interface HarborTask extends Pick<TaskFields, 'tools' | 'reward_range'> {
  readonly folder: TaskFolder;
  readonly digest: string;
  readonly spec: SandboxSpec;
  readonly verifierSpec: SandboxSpec;
  readonly verifierEnv: Readonly<Record<string, string>>;
  readonly solutionEnv: Readonly<Record<string, string>>;
  readonly keepsPrograms: boolean;
}

export const harborTask = fields.transform(async (task, context): Promise<HarborTask> => {
  try {
    return await readTask(task);
  } catch (error) {
    context.addIssue({ code: 'custom', path: ['folder'], message: `${task.folder}: ${messageOf(error)}` });
    return z.NEVER;
  }
});

async function readTask({ folder: path, digest: expected, env, tools, reward_range }: TaskFields): Promise<HarborTask> {
  const folder = await readTaskFolder(path);
  const digest = await digestTask(path);
  if (expected !== undefined && expected !== digest) throw new Error('the folder has changed since it was submitted');
  const { environment, verifier, solution, metadata } = folder.toml;
  return {
    tools: [...tools, ...readServers(environment, folder.environment.workdir)],
    reward_range,
    folder,
    digest,
    spec: toSpec(folder.environment, environment, env),
    verifierSpec: toSpec(folder.verifier, verifier.environment ?? environment, env),
    verifierEnv: fillVariables(verifier.env, env),
    solutionEnv: fillVariables(solution.env, env),
    keepsPrograms: readKeepsPrograms(metadata),
  };
}

/** Servers on standard input and output, in the sandbox of the agent. */
function readServers({ mcp_servers }: HarborEnvironment, cwd: string): ToolChoice[] {
  return mcp_servers.map(({ name, command, args }) => {
    const parsed = mcpChoice.safeParse({ mcp: name.replace(/[^A-Za-z0-9_-]/g, '_'), command: [command, ...args], cwd });
    if (parsed.success) return parsed.data;
    throw new Error(`task.toml: environment.mcp_servers: ${name}: ${describeIssues(parsed.error.issues)}`);
  });
}

/** `[metadata.millrace] keep_programs = true`: the check needs a server that the agent started. */
function readKeepsPrograms(metadata: Readonly<Record<string, unknown>>): boolean {
  const own = z.object({ millrace: z.object({ keep_programs: z.boolean() }) }).safeParse(metadata);
  return own.success && own.data.millrace.keep_programs;
}

function toSpec({ image, home }: EnvironmentImage, toml: HarborEnvironment, given: Readonly<Record<string, string>>): SandboxSpec {
  const limits = definedOf({
    cpus: toml.cpus,
    memoryMiB: toml.memory_mb === undefined ? undefined : Math.max(toml.memory_mb, leastMemoryMiB),
    diskMiB: toml.storage_mb,
  });
  const isClosed = toml.network_mode === undefined ? toml.allow_internet === false : toml.network_mode !== 'public';
  return { image, env: { HOME: home, ...fillVariables(toml.env, given) }, limits, ...(isClosed ? { network: 'none' } : {}) };
}
