// Opens what scripted agents are played with: the sandboxes and scenarios of a configuration, and the parts of a worker that they never
// use, since no model is sampled.

import { join } from 'node:path';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { openConversation } from '@millrace/model';
import { findCgroups, holdLayers } from '@millrace/sandbox';
import { loadScenarios, OutsideTools, readPrompts } from '@millrace/scenarios';
import { openDriver, openLayers, type ServiceConfig } from '@millrace/server';
import { BackendPool, ControlResults, PolicyGate } from '@millrace/worker';
import { writeTinyModel } from '../author/local/tiny-model.ts';
import type { PlayDeps } from './play.ts';

export interface Plays extends AsyncDisposable {
  readonly deps: PlayDeps;
}

/** `folder` is for the files of this process. */
export async function openPlays(config: ServiceConfig, folder: string): Promise<Plays> {
  await using stack = new AsyncDisposableStack();
  await findCgroups({ enter: true });
  const bare = await openDriver(config, silentLog);
  const layers = openLayers(config, bare);
  const { judge, gym, tools, prompts, http, scenarios } = config;
  const model = join(folder, 'model');
  await writeTinyModel(model);
  const pace = new Pace();
  const deps: PlayDeps = {
    scenarios: await loadScenarios(scenarios, { ...http.prorl, judge, gym, tools }),
    sources: scenarios,
    driver: holdLayers(bare, layers),
    layers,
    pool: stack.use(new BackendPool({ log: silentLog, pace })),
    gate: new PolicyGate(),
    conversation: await openConversation(model, { toolParser: 'hermes' }),
    model: 'none',
    clock: systemClock,
    controls: new ControlResults(systemClock),
    pace,
    outside: stack.use(new OutsideTools(tools)),
    ...(prompts === undefined ? {} : { prompts: await readPrompts(prompts) }),
    onTurn() {},
  };
  const moved = stack.move();
  return { deps, [Symbol.asyncDispose]: () => moved.disposeAsync() };
}
