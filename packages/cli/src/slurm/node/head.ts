// The head of a deployment: PostgreSQL, unless the configuration names one, and the server, both on one node. It writes its address
// where the other nodes find it, and ends in the opposite order: server, then database.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  chooseFreePort,
  type Log,
  openProcessLog,
  openRootlessPostgres,
  type RootlessPostgres,
  readConfig,
  type ServiceConfig,
} from '@millrace/server';
import type { Io } from '../../command/command.ts';
import { startService } from '../../operate/serve.ts';
import type { SlurmSettings } from '../deployment/slurm-options.ts';
import { findNodeAddress } from './address.ts';
import type { StopSignals } from './node.ts';
import { makeRunFolder } from './run-folder.ts';

/** The script puts the job back into the queue. */
const tryAgainCode = 75;

export async function runHead({ config, deployment }: SlurmSettings, stop: StopSignals, io: Io): Promise<number> {
  const log = openProcessLog('json', 'server');
  const node = io.env.SLURMD_NODENAME;
  const host = await findNodeAddress(config.slurm.network, node);
  const data = join(config.slurm.data, deployment.name);
  const hasOwnStore = config.store.address === undefined;
  let code = 1;
  {
    await using postgres = hasOwnStore ? await openPostgres(config, { folder: data, host, log }) : undefined;
    const port = await chooseFreePort(host, (await deployment.readHome())?.port);
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
        ...(postgres && { failed: postgres.died }),
      },
    );
    await deployment.removeHead();
    if (code !== 0 && stop.asked.aborted === false && postgres !== undefined) code = (await hasDied(postgres)) ? tryAgainCode : code;
  }
  const isPurged = await rm(deployment.purgePath).then(
    () => true,
    () => false, // no one asked for it
  );
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

async function hasDied({ died }: RootlessPostgres): Promise<boolean> {
  return await Promise.race([died.then(() => true), Promise.resolve(false)]);
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

/** Part of the grace period is for what comes after: saving, leaving, and stopping the database. */
export function toHandBackMs(graceSeconds: number): number {
  return Math.round(graceSeconds * 600);
}
