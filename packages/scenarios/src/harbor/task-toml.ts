// The configuration of a Harbor task, task.toml: the fields that a run here needs, in all versions of the format. What cannot be carried out
// here is refused by the name of its field.

import { messageOf } from '@millrace/protocol';
import { parse } from 'smol-toml';
import { z } from 'zod';

const seconds = z.number().gt(0);
const variables = z.record(z.string(), z.coerce.string()).default({});
const networkMode = z.enum(['public', 'no-network', 'allowlist']);
const none = (what: string) => `${what} cannot be used here`;

/** `4G`, as older versions of the format write sizes. */
const size = z
  .string()
  .regex(/^\s*[\d.]+\s*[GMK]\s*$/i, 'expected a size such as 4G or 512M')
  .transform((text) => {
    const factor = { G: 1024, M: 1, K: 1 / 1024 }[text.trim().slice(-1).toUpperCase()] ?? 1;
    return Math.floor(Number.parseFloat(text) * factor);
  });

const healthcheck = z.object({
  command: z.string().min(1),
  interval_sec: seconds.default(5),
  timeout_sec: seconds.default(30),
  start_period_sec: z.number().min(0).default(0),
  start_interval_sec: seconds.default(5),
  retries: z.int().min(1).default(3),
});

const mcpServer = z.object({
  name: z.string().min(1),
  transport: z.literal('stdio', none('an MCP server over HTTP of a task')),
  command: z.string().min(1),
  args: z.array(z.string()).default([]),
});

const environment = z
  .object({
    docker_image: z.string().min(1).optional(),
    build_timeout_sec: seconds.default(600),
    os: z
      .string()
      .default('linux')
      .refine((os) => os.toLowerCase() === 'linux', 'only linux can be run here'),
    cpus: z.number().gt(0).optional(),
    memory_mb: z.int().min(1).optional(),
    memory: size.optional(),
    storage_mb: z.int().min(1).optional(),
    storage: size.optional(),
    gpus: z.int().max(0, none('a GPU')).optional(),
    tpu: z.undefined(none('a TPU')).optional(),
    network_mode: networkMode.optional(),
    allow_internet: z.boolean().optional(),
    mcp_servers: z.array(mcpServer).default([]),
    env: variables,
    workdir: z.string().startsWith('/').optional(),
    healthcheck: healthcheck.optional(),
  })
  .transform(({ memory, storage, ...rest }) => ({ ...rest, memory_mb: rest.memory_mb ?? memory, storage_mb: rest.storage_mb ?? storage }));

export type HarborEnvironment = z.infer<typeof environment>;

const service = z.literal('main', 'only the service main can be run here').optional();

const artifact = z
  .union([z.string(), z.object({ source: z.string(), exclude: z.array(z.string()).default([]), service })])
  .transform((entry) => (typeof entry === 'string' ? { source: entry, exclude: [] } : { source: entry.source, exclude: entry.exclude }))
  .refine(({ source }) => source !== '' && !source.split('/').includes('..'), 'a source has no `..`');

const verifier = z
  .object({
    timeout_sec: seconds.default(600),
    env: variables,
    environment_mode: z.enum(['shared', 'separate']).optional(),
    environment: environment.optional(),
    collect: z.array(z.object({ command: z.string().min(1), service, timeout_sec: seconds.default(60) })).default([]),
  })
  .refine(
    (one) => one.environment_mode !== 'shared' || one.environment === undefined,
    'environment_mode shared excludes [verifier.environment]',
  );

const taskToml = z.object({
  task: z.object({ name: z.string() }).optional(),
  metadata: z.record(z.string(), z.unknown()).default({}),
  agent: z.object({ timeout_sec: seconds.optional() }).prefault({}),
  verifier: verifier.prefault({}),
  environment: environment.prefault({}),
  solution: z.object({ env: variables }).prefault({}),
  steps: z.array(z.unknown()).max(0, 'a task of several steps cannot be run here').default([]),
  artifacts: z.array(artifact).default([]),
});

export type TaskToml = z.infer<typeof taskToml>;

/** Throws an Error that names the field, or the line of a syntax error. */
export function parseTaskToml(text: string): TaskToml {
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    const line = error instanceof Error && 'line' in error ? `:${error.line}` : '';
    throw new Error(`task.toml${line}: ${messageOf(error).split('\n')[0]}`);
  }
  const parsed = taskToml.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw new Error(`task.toml: ${issues.join('; ')}`);
}

/** `separate` if it is said, or if the verifier has an environment. */
export function readMode({ verifier: { environment_mode, environment: own } }: TaskToml): 'shared' | 'separate' {
  return environment_mode ?? (own === undefined ? 'shared' : 'separate');
}

/** `${NAME}` and `${NAME:-default}` take values that the task was submitted with, never variables of this machine. */
export function fillVariables(env: Readonly<Record<string, string>>, given: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(env).map(([name, value]) => {
    const [, variable, preset] = /^\$\{([^}:]+)(?::-(.*))?\}$/s.exec(value) ?? [];
    if (variable === undefined) return [name, value];
    const filled = given[variable] ?? preset;
    if (filled === undefined)
      throw new Error(`task.toml: ${name} needs a value of ${variable}: submit the task with env: { ${JSON.stringify(variable)}: … }`);
    return [name, filled];
  });
  return Object.fromEntries(entries);
}
