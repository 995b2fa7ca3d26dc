// A tool server from a configuration: the sandboxes of this machine for agents that run elsewhere. It needs no store, no worker and no model.

import { systemClock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { openWarmPool } from '@millrace/sandbox';
import type { ServiceConfig } from './config.ts';
import { checkListen } from './http/request/auth.ts';
import { openDriver } from './service.ts';
import { openToolApp } from './tool-server/tool-app.ts';
import { ToolSandboxes } from './tool-server/tool-sandboxes.ts';

interface ToolServerOptions {
  readonly log: Log;
  /** How many sandboxes may be open. */
  readonly sandboxes: number;
  /** How long one action may run. */
  readonly timeoutMs: number;
  /** After how long without an action a sandbox is closed. */
  readonly idleMs: number;
}

export interface RunningToolServer extends AsyncDisposable {
  /** With the port that it really got. */
  readonly url: string;
}

/** Listens when it returns. Throws if it would be open to the network without a key. */
export async function openToolServer(config: ServiceConfig, options: ToolServerOptions): Promise<RunningToolServer> {
  const { log, sandboxes: most, timeoutMs, idleMs } = options;
  checkListen(config.http);
  await using stack = new AsyncDisposableStack();
  const bare = await openDriver(config, log);
  await bare.sweep();
  const driver = stack.use(openWarmPool(bare, { config: config.sandbox.warm, log }));
  const sandboxes = stack.use(new ToolSandboxes({ driver, most, idleMs, clock: systemClock, log }));
  const app = openToolApp({ sandboxes, config: config.http, timeoutMs, clock: systemClock, log });
  stack.defer(() => app.close());
  const url = await app.listen({ host: config.http.host, port: config.http.port });
  const owned = stack.move();
  return { url, [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose]() };
}
