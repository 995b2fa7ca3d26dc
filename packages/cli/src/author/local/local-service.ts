// The folders and the configuration of a service that lives for one command: a temporary folder with the tiny model, removed at the
// end.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig, type ServiceConfig } from '@millrace/server';
import { writeTinyModel } from './tiny-model.ts';

export interface LocalService extends AsyncDisposable {
  readonly config: ServiceConfig;
  readonly folder: string;
  /** The folder of the tokenizer. */
  readonly model: string;
}

/** `overrides` are fields of the configuration by their dotted names; `file` is a configuration to start from. */
export async function openLocalService(overrides: Readonly<Record<string, unknown>> = {}, file?: string): Promise<LocalService> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-')); // short: sockets are in it
  const model = join(folder, 'model');
  await writeTinyModel(model);
  const config = readConfig(file, {
    data: join(folder, 'data'),
    run: join(folder, 'run'),
    'model.tokenizer': model,
    'model.toolParser': 'hermes',
    'http.host': '127.0.0.1',
    'http.port': 0,
    'http.keys': [],
    ...overrides,
  });
  return { config, folder, model, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true, maxRetries: 3 }) };
}
