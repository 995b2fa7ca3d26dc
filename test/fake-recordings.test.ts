// The fake backend against the recordings of real engines: the same requests, at the same moments, get replies of the same shape. A
// difference fails, unless it is listed here with its reason.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FakeBackend, openFakeTokens, type PolicyInput, type Recording, readRecordings } from '@millrace/testkit';
import type { Engine } from '../world/engines/engine-process.ts';
import { contextTokens } from '../world/engines/vllm.ts';
import { modelName } from '../world/engines/world-cache.ts';
import { type RecordingSession, recordCases, sessions } from '../world/recordings/sessions.ts';
import { strictShapeOf } from '../world/recordings/shape.ts';

/** Cases whose reply differs, by engine and name. One that no longer differs fails too. */
const exceptions: Readonly<Record<string, string>> = {
  'vllm tokenize-messages': 'the service renders messages itself, so the fake has no chat templates',
  'llamacpp apply-template': 'the service renders messages itself, so the fake has no chat templates',
};

const tokens = openFakeTokens();

for (const session of sessions) {
  const stored = new Map(readRecordings(session.engine).flatMap(({ recordings }) => recordings.map((one) => [one.name, one])));
  describe(`the fake replies as recorded: ${session.name}`, { timeout: 120_000 }, () => {
    for (const [file, cases] of Object.entries(session.files)) {
      test(`${session.engine} ${file}`, async () => {
        const differences: string[] = [];
        for (const one of cases) {
          await using engine = await openFakeEngine(session);
          const [faked] = await recordCases(engine, [one]);
          const real = stored.get(one.name) ?? assert.fail(`${one.name} is not recorded`);
          differences.push(...compare(session, faked ?? assert.fail(), real));
        }
        assert.equal(differences.length, 0, `\n${differences.join('\n')}\n`);
      });
    }
  });
}

function compare({ engine }: RecordingSession, faked: Recording, real: Recording): string[] {
  assert.deepEqual(
    faked.exchanges.map(({ request }) => JSON.parse(JSON.stringify(request))),
    real.exchanges.map(({ request }) => request),
    `${real.name} asks for something else than was recorded: node world/record.ts`,
  );
  const [is, must] = [strictShapeOf(faked), strictShapeOf(real)];
  const lines = [
    ...must.filter((line) => !is.includes(line)).map((line) => `  real  ${line}`),
    ...is.filter((line) => !must.includes(line)).map((line) => `  fake  ${line}`),
  ];
  const isListed = `${engine} ${real.name}` in exceptions;
  if (isListed) return lines.length > 0 ? [] : [`${engine} ${real.name}: is listed as an exception and does not differ`];
  return lines.length === 0 ? [] : [`${engine} ${real.name}`, ...lines];
}

/** A fake that takes its time, so that a request can be aborted or paused in the middle, and dies as the engine does. */
async function openFakeEngine({ fake: options }: RecordingSession): Promise<Engine> {
  const fake = new FakeBackend(
    {
      ...options,
      policy: say,
      model: modelName,
      maxModelLen: contextTokens,
      vocabularySize: 49_152,
      tokenMs: 4,
      latencyMs: ({ promptTokens }) => (promptTokens > 1000 ? 2000 : 0),
    },
    await tokens,
  );
  await fake.listen();
  let ended: Promise<void> | undefined;
  const end = (signal: NodeJS.Signals, of: 'engine' | 'worker') => {
    // vLLM reports the death of its worker, and its own end by SIGTERM, to its callers.
    ended = signal === 'SIGKILL' && of === 'engine' ? fake[Symbol.asyncDispose]() : fake.crash();
  };
  return {
    url: fake.url,
    signal: (signal) => end(signal, 'engine'),
    signalChildren: (signal) => end(signal, 'worker'),
    exited: async () => await ended,
    [Symbol.asyncDispose]: async () => await (ended ?? fake[Symbol.asyncDispose]()),
  };
}

/** As long as the real model's replies: short to a question, up to the limit where it must not end. */
function say({ promptIds, maxTokens, encode }: PolicyInput) {
  const isLong = promptIds.length > 1000 || [20, 40, 1500].includes(maxTokens);
  return isLong ? { tokenIds: new Int32Array(2048).fill(encode(' on')[0] ?? 0) } : { text: 'The answer is 4.' };
}
