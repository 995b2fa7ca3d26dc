// The real server without workers, for commands that only talk to it: nothing runs, everything is accepted and kept.

import { join } from 'node:path';
import { silentLog } from '@millrace/base/log';
import { type Client, openClient } from '@millrace/client';
import { openServer, readConfig } from '@millrace/server';
import { makeTempFolder } from '@millrace/testkit';
import { millrace, openIo } from './fake-io.ts';

export interface RealService extends AsyncDisposable {
  readonly url: string;
  readonly client: Client;
  /** Runs one command line against the service. */
  run(argv: readonly string[], io?: Parameters<typeof openIo>[0]): ReturnType<typeof millrace>;
}

export async function openRealService(): Promise<RealService> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await makeTempFolder('cli'));
  const config = readConfig(undefined, { data: join(folder.path, 'data'), run: join(folder.path, 'run'), 'http.port': 0, workers: 0 });
  const url = await stack.use(await openServer(config, { log: silentLog })).listen();
  const client = stack.use(openClient({ url }));
  const owned = stack.move();
  return {
    url,
    client,
    run: (argv, io = {}) => millrace(argv, openIo({ ...io, env: { MILLRACE_URL: url, ...io.env } })),
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}
