// The head of a deployment: PostgreSQL, unless the configuration names one, and the server, both on one node. It writes its address
// where the other nodes find it, and ends in the opposite order: server, then database.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '@millrace/base/clock';
import { chooseFreePort } from '@millrace/base/free-port';
import type { Log } from '@millrace/base/log';
import { openProcessLog, openRootlessPostgres, type RootlessPostgres, readConfig, type ServiceConfig, StartError } from '@millrace/server';
import type { Store } from '@millrace/store';
import type { Io } from '../../command/command.ts';
import { startService } from '../../operate/serve.ts';
import { submitJob } from '../deployment/queue.ts';
import type { SlurmSettings } from '../deployment/slurm-options.ts';
import { findNodeAddress } from './address.ts';
import { makeRunFolder } from './run-folder.ts';
import type { StopSignals } from './stop-signals.ts';

const pollMs = 300;
/** The script puts the job back into the queue. */
const tryAgainCode = 75;

export async function runHead({ config, deployment }: SlurmSettings, stop: StopSignals, io: Io): Promise<number> {
  const log = openProcessLog('json', 'server');
  const node = io.env.SLURMD_NODENAME;
  const host = await findNodeAddress(config.slurm.network, node);
  const data = join(config.slurm.data, deployment.name);
  const hasOwnStore = config.store.address === undefined;
  const home = await deployment.readHome();
  if (hasOwnStore && home?.node !== undefined && home.node !== node) return await goHome({ config, deployment }, home.node);
  let code = 1;
  {
    await using postgres = hasOwnStore ? await openPostgres(config, { folder: data, host, log }) : undefined;
    const port = await chooseFreePort(host, home?.port);
    // Where the store is, before there is anything in it: the next head must come to this node.
    await deployment.writeHome({ port, ...(hasOwnStore && !config.slurm.allowNetworkData && node !== undefined && { node }) });
    await using folder = await makeRunFolder(config.slurm, deployment.name);
    const key = await deployment.makeKey();
    const settings = toHeadConfig(deployment.configPath, {
      host,
      port,
      key,
      run: folder.path,
      data,
      graceSeconds: config.slurm.graceSeconds,
      ...(postgres && { storeUrl: postgres.url }),
    });
    code = await startService(
      { config: settings, workers: config.slurm.head.workers, backends: [] },
      {
        io,
        format: 'json',
        onUp: (url) =>
          deployment.writeHead({ url, node: node ?? host, jobId: io.env.SLURM_JOB_ID ?? '', startedAt: new Date().toISOString() }),
        beforeStop: (store) => waitForWorkers(store, { withinMs: toWaitMs(config.slurm.graceSeconds), urged: stop.urged }),
        ...(postgres && { failed: postgres.died }),
      },
    );
    await deployment.removeHead();
    if (code !== 0 && !stop.asked.aborted) code = tryAgainCode;
  }
  const isPurged = await rm(deployment.purgePath).then(
    () => true,
    () => false, // no one asked for it
  );
  if (isPurged) await rm(deployment.checkpoints, { recursive: true, force: true });
  if (isPurged && hasOwnStore) await rm(data, { recursive: true, force: true });
  return code;
}

async function openPostgres(
  { slurm }: ServiceConfig,
  { folder, host, log }: { folder: string; host: string; log: Log },
): Promise<RootlessPostgres> {
  const { allowNetworkData: allowNetworkFolder, postgresPrograms: programs } = slurm;
  return await openRootlessPostgres({
    folder: join(folder, 'postgres'),
    host,
    log,
    allowNetworkFolder,
    ...(programs !== undefined && { programs }),
  });
}

/** The store is on another node: Slurm put this job back into the queue, and started it here. The next one runs there. */
async function goHome({ config, deployment }: SlurmSettings, node: string): Promise<number> {
  const { node: asked } = config.slurm.head;
  if (asked !== undefined && asked !== node)
    throw new StartError(
      `the store of ${deployment.name} is on ${node}, and slurm.head.node is ${asked}: change it, or end the deployment with --purge`,
    );
  const id = await submitJob({ script: deployment.scriptPath('head'), node });
  process.stderr.write(`millrace: the store is on ${node}; job ${id} continues there\n`);
  return 0;
}

interface HeadPlace {
  readonly host: string;
  readonly port: number;
  readonly key: string;
  readonly run: string;
  readonly data: string;
  readonly graceSeconds: number;
  readonly storeUrl?: string;
}

function toHeadConfig(path: string, { host, port, key, run, data, graceSeconds, storeUrl }: HeadPlace): ServiceConfig {
  const { http } = readConfig(path);
  return readConfig(path, {
    data,
    run,
    'http.host': host,
    'http.port': port,
    'http.keys': [key, ...http.keys],
    'pipeline.handBackMs': toHandBackMs(graceSeconds),
    'store.address': storeUrl,
  });
}

/**
 * At the time limit, all jobs are asked to end together: what workers hold goes back to the queue only while there is a store. Workers that
 * were not asked to end hold what they have until the next head.
 */
async function waitForWorkers(
  store: Pick<Store, 'workers'>,
  { withinMs, urged }: { readonly withinMs: number; readonly urged: AbortSignal },
): Promise<void> {
  const endsAt = performance.now() + withinMs;
  while (performance.now() < endsAt && !urged.aborted) {
    const left = await store.workers().catch(() => []); // there is no store to wait for
    if (left.every(({ hasEnded }) => hasEnded)) return;
    await sleep(pollMs, { signal: urged }).catch(() => {}); // asked twice: the wait ends
  }
}

/** Workers use up what `toHandBackMs` gives them, and then leave; the rest is for the server and the database. */
function toWaitMs(graceSeconds: number): number {
  return Math.round(graceSeconds * 800);
}

/** Part of the grace period is for what comes after: saving, leaving, and stopping the database. */
export function toHandBackMs(graceSeconds: number): number {
  return Math.round(graceSeconds * 600);
}
