// `npm run test:world`: the second test tier, with real engines and a real model. Installs them into a cache folder outside the clone,
// starts the engines that the tests share, runs every world/**/*.test.ts, and says at the end what passed. Names of files run only those.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Engine } from '../world/engines/engine-process.ts';
import { openLlama } from '../world/engines/llama.ts';
import { openFull, openPlain, sharedVariables } from '../world/engines/shared-engines.ts';

const startedAt = performance.now();

installOrExit('vLLM and the model', 'scripts/install-vllm.sh');
installOrExit('llama-server', 'scripts/install-llama-server.sh');
installOrExit('chat templates and their reference', 'world/models/install.sh');
installOrExit('published tokenizers and their reference', 'world/tokenizers/install.sh');
const installedAt = performance.now();
const given = process.argv.slice(2);
const failed = new AbortController();
const services = given.length > 0 ? 0 : runLane('services', ['--lane=services']);
await using engines = await openEngines().catch(async (error) => {
  failed.abort();
  await services;
  throw error;
});
const statuses = [await runLane('engines', given.length > 0 ? given : ['--lane=engines']), await services];
const isPassed = statuses.every((status) => status === 0);
const minutes = (ms: number) => `${(ms / 60_000).toFixed(1)} min`;
console.log(
  `${isPassed ? '✔ test:world: passed' : '✖ test:world: failed'} in ${minutes(performance.now() - startedAt)}, ` +
    `of which installing took ${minutes(installedAt - startedAt)} and starting engines ${minutes(engines.startMs)}`,
);
process.exitCode = isPassed ? 0 : 1;

/** In its own process: the time limit of a test file looks at all children of the process that runs the tests, and engines live longer. */
async function runLane(name: string, args: readonly string[]): Promise<number> {
  const tests = spawn(process.execPath, ['scripts/world-tests.ts', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    signal: failed.signal,
  });
  tests.on('error', () => undefined); // aborted
  for await (const line of createInterface({ input: tests.stdout })) console.log(given.length > 0 ? line : `${name} │ ${line}`);
  if (tests.exitCode === null && tests.signalCode === null) await once(tests, 'exit');
  return tests.exitCode ?? 1;
}

function installOrExit(what: string, script: string): void {
  const { status } = spawnSync('bash', [script], { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status === 0) return;
  console.log(`✖ test:world: ${what} could not be installed; the lines above say why`);
  process.exit(1);
}

/** One after the other: two that start at once take longer than both in turn. */
async function openEngines(): Promise<AsyncDisposable & { readonly startMs: number }> {
  const startingAt = performance.now();
  const engines = new AsyncDisposableStack();
  const open = async (what: string, variable: string, start: () => Promise<Engine>) => {
    const begin = performance.now();
    process.env[variable] = engines.use(await start()).url;
    console.log(`✔ ${what} is up (${((performance.now() - begin) / 1000).toFixed(0)} s)`);
  };
  try {
    await open('llama-server', sharedVariables.llama, () => openLlama());
    await open('vLLM with all routes', sharedVariables.vllm, openFull);
    await open('vLLM as most users start it', sharedVariables.plain, openPlain);
  } catch (error) {
    await engines.disposeAsync();
    throw error;
  }
  return { startMs: performance.now() - startingAt, [Symbol.asyncDispose]: () => engines.disposeAsync() };
}
