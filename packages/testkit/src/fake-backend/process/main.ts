// The fake backend as a separate process, so that benchmarks do not measure it. It prints one JSON line with its url. If it has an
// IPC channel to its parent, it receives new weights and faults over it, and exits when the channel closes.
//
//   node main.ts --policy fixed --turns 3 --tokens-per-turn 64 --latency 200

import { resolve } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { openFakeBackend } from '../fake-backend.ts';
import { longTailLatency } from '../faults.ts';
import { echoPolicy, fixedPolicy, type Policy } from '../policy.ts';
import type { FakeBackendCommand } from './process.ts';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    /** fixed, echo, or the path of a module that exports `policy`. */
    policy: { type: 'string', default: 'fixed' },
    turns: { type: 'string', default: '3' },
    'tokens-per-turn': { type: 'string', default: '64' },
    /** Milliseconds; `long-tail:200` has 200 as its median. */
    latency: { type: 'string', default: '0' },
    'token-ms': { type: 'string', default: '0' },
    weights: { type: 'string', default: '0' },
    model: { type: 'string', default: 'fake' },
  },
});

async function choosePolicy(): Promise<Policy> {
  if (values.policy === 'fixed') return fixedPolicy({ turns: Number(values.turns), tokensPerTurn: Number(values['tokens-per-turn']) });
  if (values.policy === 'echo') return echoPolicy;
  const { policy } = await import(pathToFileURL(resolve(values.policy)).href);
  if (typeof policy !== 'function') throw new Error(`${values.policy} exports no function named policy`);
  return policy;
}

const [, longTail] = /^long-tail:(.+)$/.exec(values.latency) ?? [];
const backend = await openFakeBackend({
  policy: await choosePolicy(),
  port: Number(values.port),
  latencyMs: longTail === undefined ? Number(values.latency) : longTailLatency({ medianMs: Number(longTail) }),
  tokenMs: Number(values['token-ms']),
  weights: Number(values.weights),
  model: values.model,
  maxModelLen: 10_000_000,
  keep: 0,
});
process.on('message', async ({ weights, fault }: FakeBackendCommand) => {
  const inFlight = backend.inFlight;
  if (weights !== undefined) {
    // It takes a moment to notice callers that have disconnected.
    while (backend.inFlight > 0) await setImmediate();
    backend.setWeights(weights);
  }
  if (fault !== undefined) backend.setFaults(fault === null ? undefined : () => fault);
  process.send?.({ inFlight });
});
process.once('disconnect', () => process.exit());
process.once('SIGTERM', () => process.exit());
process.stdout.write(`${JSON.stringify({ url: backend.url })}\n`);
