// An LLM server of a deployment: starts its command, adds it to the pool when it is healthy, and takes it out before it ends.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { sleep } from '@millrace/base/clock';
import { chooseFreePort } from '@millrace/base/free-port';
import type { Log } from '@millrace/base/log';
import { type Client, openClient } from '@millrace/client';
import { definedOf, dialects, messageOf } from '@millrace/protocol';
import { openProcessLog, StartError } from '@millrace/server';
import type { Deployment } from '../deployment/deployment.ts';
import type { SlurmSettings } from '../deployment/slurm-options.ts';
import { findNodeAddress } from './address.ts';
import { waitForHead } from './follow-head.ts';
import { toHandBackMs } from './head.ts';
import type { StopSignals } from './stop-signals.ts';

const pollMs = 1000;
const killMs = 10_000;

export async function runLlmNode({ config: { slurm }, deployment }: SlurmSettings, stop: StopSignals): Promise<number> {
  const { llm } = slurm;
  if (llm.command === '') throw new StartError('slurm.llm.command is empty');
  const log = openProcessLog('json', 'worker');
  const host = await findNodeAddress(slurm.network, process.env.SLURMD_NODENAME);
  const port = await chooseFreePort(host);
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  await using server = startServer(llm.command.replaceAll('{port}', String(port)).replaceAll('{host}', host));
  const ended = AbortSignal.any([stop.asked, server.ended]);
  await waitUntilHealthy(`${url}/${llm.health.replace(/^\//, '')}`, { withinMs: llm.startSeconds * 1000, signal: ended });
  if (server.ended.aborted) throw new Error(`the LLM server ended before it was ready, with ${server.exit()}`);
  const backend = { url, ...definedOf({ dialect: dialects.find((one) => one === llm.dialect) }) };
  const id = await keepJoined(deployment, { backend, signal: ended, log });
  if (id !== undefined)
    await leave(deployment, { id, drainMs: server.ended.aborted ? 0 : toHandBackMs(slurm.graceSeconds), urged: stop.urged, log });
  if (server.ended.aborted) throw new Error(`the LLM server ended with ${server.exit()}`);
  return 0;
}

interface LlmServer extends AsyncDisposable {
  /** Aborted when its command has ended. */
  readonly ended: AbortSignal;
  exit(): string;
}

function startServer(command: string): LlmServer {
  // In its own process group, so that all that it starts ends with it.
  const child: ChildProcess = spawn('bash', ['-c', command], { detached: true, stdio: ['ignore', 'inherit', 'inherit'] });
  const ended = new AbortController();
  const exited = once(child, 'exit').catch(() => []);
  void exited.then(() => ended.abort());
  const signalAll = (signal: NodeJS.Signals) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch {
      // all of them are gone: that is what we wanted
    }
  };
  return {
    ended: ended.signal,
    exit: () => `${child.signalCode ?? `exit code ${child.exitCode}`}`,
    async [Symbol.asyncDispose]() {
      signalAll('SIGTERM');
      const patience = new AbortController();
      await Promise.race([exited, sleep(killMs, { signal: patience.signal }).catch(() => {})]); // it may end in time
      patience.abort();
      signalAll('SIGKILL');
      await exited;
    },
  };
}

async function waitUntilHealthy(
  url: string,
  { withinMs, signal }: { readonly withinMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const startedAt = performance.now();
  while (!signal.aborted) {
    const reply = await fetch(url, { signal: AbortSignal.timeout(5000) }).catch(() => undefined); // not yet listening
    if (reply?.ok) return;
    if (performance.now() - startedAt > withinMs)
      throw new StartError(`the LLM server did not answer ${url} with 200 within ${withinMs / 1000} s: see slurm.llm.startSeconds`);
    await sleep(pollMs, { signal }).catch(() => {}); // the loop ends
  }
}

interface PoolMember {
  readonly backend: Parameters<Client['backends']['join']>[0];
  readonly signal: AbortSignal;
  readonly log: Log;
}

/** Joins the pool of the head, and again whenever a head does not know it. Returns its id there, if it ever joined. */
async function keepJoined(deployment: Deployment, { backend, signal, log }: PoolMember): Promise<string | undefined> {
  let id: string | undefined;
  while (!signal.aborted) {
    try {
      await using client = await openPoolClient(deployment, signal);
      const known = await client.backends.list();
      if (!known.some((one) => one.url === backend.url)) id = (await client.backends.join(backend)).id;
    } catch (error) {
      if (!signal.aborted) log.warn('backend-keep-failed', { url: backend.url, error: messageOf(error) });
    }
    await sleep(5 * pollMs, { signal }).catch(() => {}); // the loop ends
  }
  return id;
}

async function openPoolClient(deployment: Deployment, signal: AbortSignal): Promise<Client> {
  const { url } = await waitForHead(deployment, signal);
  return openClient({ url, timeoutMs: 5000, ...definedOf({ key: await deployment.readKey() }) });
}

interface Leaving {
  readonly id: string;
  readonly drainMs: number;
  readonly urged: AbortSignal;
  readonly log: Log;
}

async function leave(deployment: Deployment, { id, drainMs, urged, log }: Leaving): Promise<void> {
  const head = await deployment.readHead();
  if (head === undefined) return;
  await using client = openClient({ url: head.url, timeoutMs: 5000, ...definedOf({ key: await deployment.readKey() }) });
  try {
    await client.backends.drain(id);
    const startedAt = performance.now();
    while (performance.now() - startedAt < drainMs && !urged.aborted) {
      const { in_flight = 0 } = (await client.backends.list()).find((one) => one.id === id) ?? {};
      if (in_flight === 0) break;
      await sleep(pollMs, { signal: urged }).catch(() => {}); // the loop ends
    }
    await client.backends.leave(id);
  } catch (error) {
    log.warn('backend-leave-failed', { id, error: messageOf(error) });
  }
}
