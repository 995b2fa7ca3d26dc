// `millrace policy`: whether the service samples, and under which weights; pauses and resumes it for a change of weights.

import { openClient } from '@millrace/client';
import { definedOf, type PolicyView, pauseModes } from '@millrace/protocol';
import {
  type Arguments,
  type Command,
  type CommandGroup,
  jsonOption,
  serviceOptions,
  toServiceAddress,
  UsageError,
} from '../command/command.ts';
import type { Io } from '../terminal/io.ts';
import { openPaint, toCount, toDuration, wantsColor } from '../terminal/text.ts';

const show: Command = {
  name: 'policy show',
  summary: 'Shows whether turns are sampled now, and the policy version.',
  options: { ...jsonOption, ...serviceOptions },
  examples: ['millrace policy', 'millrace policy show --json'],
  async run(args, io) {
    await using client = openClient(toServiceAddress(args, io));
    return print(await client.policy.get(), args, io);
  },
};

const pause: Command = {
  name: 'policy pause',
  summary: 'Stops sampling and waits until no call to a backend is in progress. Rollouts wait, and their clocks stop.',
  options: {
    mode: { type: 'string', value: 'MODE', describe: 'wait finishes the calls in progress; abort cuts them and continues them later.' },
    ...jsonOption,
    ...serviceOptions,
  },
  examples: ['millrace policy pause', 'millrace policy pause --mode abort'],
  async run(args, io) {
    const mode = args.choice('mode', pauseModes);
    await using client = openClient(toServiceAddress(args, io));
    return print(await client.policy.pause(definedOf({ mode })), args, io);
  },
};

const resume: Command = {
  name: 'policy resume',
  summary: 'Continues sampling, under a new policy version where one is named.',
  options: {
    version: { type: 'string', value: 'N', describe: 'The version that all backends serve from now on; unchanged by default.' },
    'allow-lower': { type: 'boolean', describe: 'The version may be lower than the current one: an earlier checkpoint is served.' },
    'keep-caches': { type: 'boolean', describe: 'The backends kept their prefix caches, so rollouts stay where they are.' },
    adapter: { type: 'string', value: 'NAME', describe: 'The LoRA adapter that samples from now on, as the backends name it.' },
    'base-model': { type: 'boolean', describe: 'The base model samples from now on, without an adapter.' },
    force: { type: 'boolean', describe: 'Ends a pause of another owner too, such as a trainer that died during one.' },
    ...jsonOption,
    ...serviceOptions,
  },
  examples: ['millrace policy resume', 'millrace policy resume --version 8', 'millrace policy resume --version 8 --adapter step-8'],
  async run(args, io) {
    const policy_version = args.count('version', 0);
    const name = args.text('adapter');
    if (name !== undefined && args.flag('base-model')) throw new UsageError('--adapter and --base-model exclude each other');
    const adapter = args.flag('base-model') ? null : name;
    await using client = openClient(toServiceAddress(args, io));
    const flags = { caches_flushed: !args.flag('keep-caches'), allow_lower: args.flag('allow-lower'), force: args.flag('force') };
    return print(await client.policy.resume({ ...definedOf({ policy_version, adapter }), ...flags }), args, io);
  },
};

export const policyCommands: CommandGroup = {
  name: 'policy',
  summary: 'Shows, pauses and resumes sampling, for a change of weights.',
  actions: { show, pause, resume },
  usual: 'show',
};

function print(view: PolicyView, args: Arguments, io: Io): number {
  const text = args.flag('json') ? JSON.stringify(view) : renderPolicy(view, io);
  io.stdout.write(`${text}\n`);
  return 0;
}

function renderPolicy({ state, mode, owner, policy_version, adapter, generating, since }: PolicyView, io: Io): string {
  const paint = openPaint(wantsColor(io.stdout, io.env));
  const colour = state === 'running' ? 'green' : 'yellow';
  const age = toDuration(Math.max(0, Date.now() - Date.parse(since)));
  return [
    `state    ${paint(colour, state)}${mode === null ? '' : ` (${mode})`} for ${age}`,
    ...(owner === null ? [] : [`owner    ${owner}`]),
    `version  ${policy_version}`,
    ...(adapter === null ? [] : [`adapter  ${adapter}`]),
    `calls    ${toCount(generating)} in progress`,
    ...(state === 'running' ? [] : ['', `To continue sampling: millrace policy resume${owner === null ? '' : ' --force'}`]),
  ].join('\n');
}
