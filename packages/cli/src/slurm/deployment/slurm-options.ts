// What the commands of `millrace slurm` share: the configuration, the deployment it describes, and a client of its service.

import { type Client, openClient } from '@millrace/client';
import { definedOf } from '@millrace/protocol';
import { readConfig, type ServiceConfig } from '@millrace/server';
import type { Arguments, Io, Option } from '../../command/command.ts';
import { toConfig } from '../../operate/config-options.ts';
import { Deployment } from './deployment.ts';

export const deploymentOptions = {
  config: { type: 'string', value: 'FILE', describe: 'Configuration file in JSON; its field `slurm` describes the deployment.' },
  name: { type: 'string', value: 'NAME', describe: 'The name of the deployment; `slurm.name` of the configuration by default.' },
} as const satisfies Record<string, Option>;

export interface SlurmSettings {
  readonly config: ServiceConfig;
  readonly deployment: Deployment;
}

export function toSlurmSettings(args: Arguments, io: Io): SlurmSettings {
  const config = toConfig(args, io, { 'slurm.name': args.text('name') });
  return { config, deployment: new Deployment(config) };
}

/** The configuration as `up` left it, for the programs on the nodes. */
export function readDeployment(folder: string): SlurmSettings {
  const config = readConfig(`${folder}/config.json`);
  return { config, deployment: new Deployment(config) };
}

/** A client of the service, if its head runs. */
export async function openHeadClient(deployment: Deployment, timeoutMs?: number): Promise<Client | undefined> {
  const [head, key] = await Promise.all([deployment.readHead(), deployment.readKey()]);
  return head === undefined ? undefined : openClient({ url: head.url, ...definedOf({ key, timeoutMs }) });
}
