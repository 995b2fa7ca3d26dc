// A worker machine of a deployment: joins the head, runs workers until it is asked to end, and joins again where the head moves to.

import { readMachine } from '@millrace/base/machine';
import { openProcessLog } from '@millrace/server';
import { chooseWorkers } from '../../operate/config-options.ts';
import { joinService, runJoinedWorkers } from '../../operate/join.ts';
import type { SlurmSettings } from '../deployment/slurm-options.ts';
import { waitForHead, waitForMove } from './follow-head.ts';
import { toHandBackMs } from './head.ts';
import { makeRunFolder } from './run-folder.ts';
import type { StopSignals } from './stop-signals.ts';

export async function runWorkerNode({ config: { slurm }, deployment }: SlurmSettings, stop: StopSignals): Promise<number> {
  const log = openProcessLog('json', 'worker');
  const count = slurm.worker.processes ?? chooseWorkers(readMachine(undefined).cpus);
  await using folder = await makeRunFolder(slurm, deployment.name);
  while (!stop.asked.aborted) {
    const head = await waitForHead(deployment, stop.asked).catch(() => undefined); // asked to end before there was one
    if (head === undefined) break;
    const key = await deployment.readKey();
    const overrides = {
      run: folder.path,
      'machine.labels': slurm.worker.labels,
      'pipeline.handBackMs': toHandBackMs(slurm.graceSeconds),
      'pipeline.checkpointsFolder': deployment.checkpoints,
    };
    const config = await joinService({ servers: [head.url], ...(key !== undefined && { key }), overrides, signal: stop.asked }).catch(
      (error) => {
        if (stop.asked.aborted) return undefined;
        throw error;
      },
    );
    if (config === undefined) break;
    const moved = new AbortController();
    const over = new AbortController();
    void waitForMove(deployment, head, over.signal).then(
      () => moved.abort(),
      () => {}, // this machine ended first
    );
    try {
      await runJoinedWorkers(config, {
        count,
        key,
        log,
        stop: AbortSignal.any([stop.asked, moved.signal]),
        urged: AbortSignal.any([stop.urged, moved.signal]),
      });
    } finally {
      over.abort();
    }
    if (moved.signal.aborted) log.info('head-moved', { from: head.url });
  }
  return 0;
}
