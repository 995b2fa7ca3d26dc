// The stored recordings against the live engines: an engine whose replies have another shape than the stored ones fails here, and
// `node world/record.ts` shows the difference.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { skipWithoutLlama } from '../engines/llama.ts';
import { skipWithoutVllm } from '../engines/vllm.ts';
import { readStored, readVersion, recordCases, sessions } from '../recordings/sessions.ts';
import { shapeOf } from '../recordings/shape.ts';

for (const session of sessions) {
  const skip = session.engine === 'vllm' ? skipWithoutVllm() : skipWithoutLlama();
  describe(`recordings: ${session.name}`, { skip, timeout: 1_200_000 }, () => {
    test('every reply has the shape that is stored', async (context) => {
      await using engine = await session.open();
      const version = await readVersion(session, engine);
      for (const [file, cases] of Object.entries(session.files)) {
        await context.test(`${session.engine}-${version}/${file}.json`, async () => {
          const stored = new Map(readStored(session, version, file).recordings.map((one) => [one.name, one]));
          assert.deepEqual(
            [...stored.keys()],
            cases.map(({ name }) => name),
          );
          for (const recording of await recordCases(
            engine,
            cases.filter(({ varies }) => !varies),
          )) {
            const expected = stored.get(recording.name);
            if (expected) assert.deepEqual(shapeOf(recording), shapeOf(expected), recording.name);
          }
        });
      }
    });
  });
}
