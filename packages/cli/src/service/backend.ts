// `millrace backend`: the LLM servers of a service, added, listed, drained and removed while rollouts run.

import { type Client, openClient } from '@millrace/client';
import { type BackendView, definedOf, dialects, logprobsModes } from '@millrace/protocol';
import { type Command, type CommandGroup, checkHttpAddress, jsonOption, serviceOptions, toServiceAddress } from '../command/command.ts';
import { findAll, findBackend } from '../command/find-id.ts';
import type { Io } from '../terminal/io.ts';
import { renderTable, toTableOptions } from '../terminal/table.ts';
import { padEnd, toCount, toVisible } from '../terminal/text.ts';
import { toBackendFacts } from './backend-facts.ts';
import { describeBackendState, toBackendState } from './backend-state.ts';
import { progressHeads, toProgressCells } from './call-progress.ts';

const add: Command = {
  name: 'backend add',
  summary:
    'Adds an LLM server, or changes the record of one that is already there. One that cannot be used yet is added too, with exit code 1.',
  positional: '<url>',
  options: {
    name: { type: 'string', value: 'ID', describe: 'Its id; made from the address by default.' },
    dialect: {
      type: 'string',
      value: 'NAME',
      describe: `How it is called: ${dialects.join(', ')}; by default as its server says, among vllm, sglang and llamacpp.`,
    },
    model: { type: 'string', value: 'NAME', describe: 'Sent as `model` in every request.' },
    'backend-key': { type: 'string', value: 'KEY', describe: 'Sent to it as a bearer token; MILLRACE_BACKEND_KEY by default.' },
    version: { type: 'string', value: 'N', describe: 'The policy version that it serves; the current one by default.' },
    logprobs: { type: 'string', value: 'MODE', describe: `What its logprobs are of: ${logprobsModes.join(', ')}.` },
    ...jsonOption,
    ...serviceOptions,
  },
  examples: [
    'millrace backend add http://127.0.0.1:8000',
    'millrace backend add http://gpu-3:30000 --name gpu-3',
    'millrace backend add http://gpu-0:8000 --logprobs processed --version 12',
  ],
  async run(args, io) {
    const [written = ''] = args.positionals;
    checkHttpAddress(written);
    await using client = openClient(toServiceAddress(args, io));
    const backend = await client.backends.join({
      url: written,
      ...definedOf({
        id: args.text('name'),
        dialect: args.choice('dialect', dialects),
        model: args.text('model'),
        api_key: args.text('backend-key') ?? (io.env.MILLRACE_BACKEND_KEY || undefined),
        policy_version: args.count('version', 0),
        logprobs_mode: args.choice('logprobs', logprobsModes),
      }),
    });
    const code = backend.health === 'ok' ? 0 : 1;
    if (args.flag('json')) {
      print(backend, [], io);
      return code;
    }
    print(undefined, [backend], io);
    const facts = [...toBackendFacts(backend), ...(backend.note === null ? [] : [['note', backend.note] as const])];
    for (const [name, text] of facts) io.stdout.write(`  ${padEnd(name, 11)}${text}\n`);
    return code;
  },
};

const list: Command = {
  name: 'backend ls',
  summary: 'Lists the LLM servers with their state, load and last error.',
  options: { ...jsonOption, ...serviceOptions },
  examples: ['millrace backend ls', 'millrace backend ls --json'],
  async run(args, io) {
    await using client = openClient(toServiceAddress(args, io));
    const backends = await client.backends.list();
    if (backends.length === 0 && !args.flag('json'))
      io.stderr.write('There is no backend, so rollouts cannot sample. Add one: millrace backend add http://127.0.0.1:8000\n');
    return print(args.flag('json') ? backends : undefined, backends, io);
  },
};

const drain: Command = {
  name: 'backend drain',
  summary: 'Gives backends no new rollouts; those that run on them finish.',
  positional: '<id or url …>',
  options: serviceOptions,
  examples: ['millrace backend drain gpu-3'],
  run: (args, io) =>
    forEach(args.positionals, openClient(toServiceAddress(args, io)), async (client, id) => {
      const { in_flight } = await client.backends.drain(id);
      io.stdout.write(`${id} is draining; ${toCount(in_flight)} rollouts still run on it\n`);
    }),
};

const remove: Command = {
  name: 'backend rm',
  summary: 'Removes backends at once; rollouts that run on them move to others.',
  positional: '<id or url …>',
  options: serviceOptions,
  examples: ['millrace backend rm gpu-3', 'millrace backend rm http://127.0.0.1:8000'],
  run: (args, io) =>
    forEach(args.positionals, openClient(toServiceAddress(args, io)), async (client, id) => {
      await client.backends.leave(id);
      io.stdout.write(`${id} is removed\n`);
    }),
};

export const backendCommands: CommandGroup = {
  name: 'backend',
  summary: 'Adds, lists, drains and removes the LLM servers that sample.',
  actions: { add, ls: list, drain, rm: remove },
  usual: 'ls',
};

async function forEach(ids: readonly string[], opened: Client, work: (client: Client, id: string) => Promise<void>): Promise<number> {
  await using client = opened;
  for (const { id } of await findAll(ids, (start) => findBackend(client, start))) await work(client, id);
  return 0;
}

function print(json: unknown, backends: readonly BackendView[], io: Io): number {
  const lines = json === undefined ? renderBackends(backends, io) : [JSON.stringify(json, undefined, 2)];
  if (lines.length > 0) io.stdout.write(`${lines.join('\n')}\n`);
  return 0;
}

function renderBackends(backends: readonly BackendView[], io: Io): string[] {
  if (backends.length === 0) return [];
  const rows = backends.map((backend) => {
    const { id, dialect, url, in_flight, calls, held_for_cache, policy_version, last_error } = backend;
    const state = toBackendState(backend);
    return {
      cells: [
        id,
        describeBackendState(backend),
        toCount(in_flight),
        toCount(calls),
        toCount(held_for_cache),
        ...toProgressCells(backend),
        toCount(policy_version),
        dialect,
        url,
      ],
      colour: state === 'broken' ? ('red' as const) : state === 'up' ? undefined : ('yellow' as const),
      note: state === 'broken' && last_error !== null ? toVisible(last_error.message) : undefined,
    };
  });
  return renderTable(
    ['name', 'state', 'rollouts', 'calls', 'held', ...progressHeads, 'policy', 'dialect', 'address'],
    rows,
    toTableOptions(io, [2, 3, 4, 5, 6, 7, 8]),
  );
}
