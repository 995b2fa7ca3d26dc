// `node world/compare-fake.ts [name …]`: sends every recorded request to our fake backend and prints where its reply has another shape than
// the real engine's. It needs no engine.

import { openFakeBackend, readRecordings } from '@millrace/testkit';
import { contextTokens } from './engines/vllm.ts';
import { modelName } from './engines/world-cache.ts';
import { send } from './recordings/exchange.ts';
import { shapeOf } from './recordings/shape.ts';

const wanted = process.argv.slice(2);
await using fake = await openFakeBackend({ policy: () => ({ text: 'The answer is 4.' }), model: modelName, maxModelLen: contextTokens });
let same = 0;
let compared = 0;

for (const { engine, recordings } of [...readRecordings('vllm'), ...readRecordings('llamacpp')]) {
  // What takes several requests is about timing, which a single request cannot show.
  for (const recording of recordings.filter(
    ({ name, exchanges }) => exchanges.length === 1 && (wanted.length === 0 || wanted.includes(name)),
  )) {
    const [exchange] = recording.exchanges;
    if (!exchange) continue;
    const real = shapeOf(recording);
    const faked = shapeOf({ ...recording, exchanges: [await send(fake.url, exchange.request, { quietMs: 3000 })] });
    const differences = [
      ...real.filter((line) => !faked.includes(line)).map((line) => `  real  ${line}`),
      ...faked.filter((line) => !real.includes(line)).map((line) => `  fake  ${line}`),
    ];
    compared += 1;
    if (differences.length === 0) same += 1;
    else console.log([`${engine} ${recording.name}`, ...differences].join('\n'));
  }
}
console.log(`${same} of ${compared} replies have the same shape`);
