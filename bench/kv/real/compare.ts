// Compares the hit rates of the simulated engine with those of a real vLLM that has a small KV cache:
//   node bench/kv/real/compare.ts --engine URL [--out FILE] [--rounds 150] [--pressures 0.5,1,2,3]
// Adds a line for each pressure to FILE. The model has random weights: FOLDER has SmolLM2's tokenizer and a `config.json` of a llama with 2 layers,
// hidden size 128, 2 heads of 64, 1 KV head, intermediate size 256 and 49152 words. vLLM on the CPU, with a cache of 256 blocks of 32 tokens:
//   VLLM_SERVER_DEV_MODE=1 VLLM_CPU_KVCACHE_SPACE=1 python -m vllm.entrypoints.openai.api_server --model FOLDER --served-model-name m --dtype float32 \
//     --load-format dummy --max-model-len 4096 --max-num-seqs 16 --max-num-batched-tokens 512 --block-size 32 --num-gpu-blocks-override 256 \
//     --enable-prompt-tokens-details --enforce-eager

import { appendFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { makeRounds, replayReal, replaySimulated, sceneAt, smallCache } from './replay.ts';

const { values } = parseArgs({
  options: {
    engine: { type: 'string', default: 'http://127.0.0.1:8300' },
    out: { type: 'string' },
    rounds: { type: 'string', default: '150' },
    seed: { type: 'string', default: '1' },
    pressures: { type: 'string', default: '0.5,1,2,3' },
  },
});
const rounds = Number(values.rounds);
const { version } = (await (await fetch(`${values.engine}/version`)).json()) as { readonly version: string };
const scenes = [
  ...values.pressures.split(',').map((pressure) => ({ pressure: Number(pressure), together: 4 })),
  // More than fit at the same time: some wait in the engine, and some are preempted.
  { pressure: 3, together: 14 },
];
for (const { pressure, together } of scenes) {
  const scene = sceneAt(pressure, { together, rounds: Math.ceil((4 * rounds) / together) });
  const turns = makeRounds(scene, Number(values.seed));
  const simulated = replaySimulated(turns, smallCache);
  const startedAt = new Date();
  const real = await replayReal(values.engine, turns);
  const rateOf = ({ cachedTokens, promptTokens }: typeof real) => Math.round((1000 * cachedTokens) / promptTokens) / 1000;
  const line = {
    at: startedAt.toISOString(),
    vllm: version,
    pressure,
    ...{ agents: scene.agents, together: scene.together, requests: turns.flat().length, seed: Number(values.seed) },
    hits: { simulated: rateOf(simulated), real: rateOf(real) },
    preemptions: { simulated: simulated.preemptions, real: real.preemptions },
    seconds: Math.round((Date.now() - startedAt.getTime()) / 1000),
  };
  if (values.out) appendFileSync(values.out, `${JSON.stringify(line)}\n`);
  console.log(JSON.stringify(line));
}
