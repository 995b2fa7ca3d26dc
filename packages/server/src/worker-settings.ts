// The settings that a worker on another machine takes over from the service. They hold no key of the API, and the address of the store only
// for a worker of a version that knows no other way to it.

import { resolve } from 'node:path';
import { readMachine } from '@millrace/base/machine';
import { isAddress } from '@millrace/model';
import { RolloutError, type WorkerSettings } from '@millrace/protocol';
import { isPostgresAddress, toStoreAddress, toWireFault, workerWire } from '@millrace/store';
import type { ServiceConfig } from './config.ts';

/** Paths are made absolute: the folders of a cluster are the same on all machines, the current folder is not. */
export function toWorkerSettings(config: ServiceConfig, wire: number | undefined): WorkerSettings {
  const fault = wire === undefined ? undefined : toWireFault(wire);
  if (fault !== undefined) throw new RolloutError('conflict', fault);
  // What belongs to one machine, or to the server alone, stays here.
  const {
    run: _run,
    workers: _workers,
    slurm: _slurm,
    machine: _machine,
    http,
    model,
    scenarios,
    prompts,
    data,
    store,
    ...shared
  } = config;
  const { id, name } = readMachine(undefined, {}); // the host itself, whatever its name in Slurm
  const isShared = isPostgresAddress(toStoreAddress(config));
  return {
    config: {
      ...shared,
      ...(wire === undefined && { store, ...(!isShared && { data: resolve(data) }) }),
      model: {
        ...model,
        ...(model.tokenizer !== undefined && { tokenizer: isAddress(model.tokenizer) ? model.tokenizer : resolve(model.tokenizer) }),
      },
      scenarios: scenarios.map((path) => resolve(path)),
      ...(prompts !== undefined && { prompts: resolve(prompts) }),
      http: { prorl: http.prorl },
    },
    ...(wire !== undefined && { wire: workerWire }),
    local_store: isShared || wire !== undefined ? null : { machine: name, machine_id: id },
  };
}
