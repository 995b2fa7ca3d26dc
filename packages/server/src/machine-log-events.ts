// What is logged about keys, and about workers that have servers in place of a store.

export interface LogEvent {
  readonly means: string;
  readonly hint: string;
}

export const storeFails =
  'Check the disk of the store: free space, errors, and other processes that lock the file. It is repeated until it succeeds.';

export const machineLogEvents = {
  'keys-reload-failed': {
    means: 'SIGHUP asked for new keys, and the configuration could not be read or has none.',
    hint: 'Read `error`. The keys stay as they were.',
  },
  'server-call-failed': {
    means: 'A worker that joined got no reply from a server, or one that could not reach the store.',
    hint: 'The call goes to the next server that `--join` names, and is repeated. Check the server if it comes again and again.',
  },
  'server-events-failed': {
    means: 'A worker that joined cannot wait for events at any server.',
    hint: 'It is repeated every second; until then, queued rollouts and cancels are noticed late. Check the servers.',
  },
  'worker-call-failed': {
    means: 'A call of a worker that joined failed in the store of this server.',
    hint: storeFails,
  },
} as const satisfies Readonly<Record<string, LogEvent>>;
