// Which sampling settings of a trainer reach the sampler: what its program asked for is held against what the LLM server received.

import assert from 'node:assert/strict';
import type { FakeBackend } from '@millrace/testkit';
import { z } from 'zod';

export const settingsReport = z.object({
  /** For each setting in the trainer's words, the field that should arrive and its value. */
  asked: z.record(z.string(), z.tuple([z.string(), z.unknown()])),
  /** What the adapter said to each setting that it cannot pass on. */
  refused: z.record(z.string(), z.string()),
});
type SettingsReport = z.infer<typeof settingsReport>;

/** A setting by its name in the trainer, with the field of a rollout request that it becomes, or `refused`. */
export type TrainerSettings = Readonly<Record<string, string>>;

const unknownSetting = 'a_setting_of_tomorrow';

/** What was received of a value. A context that is nearly full leaves room for fewer tokens; the model has stop tokens of its own. */
function findReceived(received: unknown, field: string, value: unknown): unknown {
  if (field === 'max_tokens') return Math.max(Number(received), Number(value));
  if (field !== 'stop_token_ids' || !Array.isArray(received) || !Array.isArray(value)) return received;
  return received.filter((id) => value.includes(id));
}

/** Returns what was proven. Only requests of these rollouts count, if any are named. */
export function checkSettings(backend: FakeBackend, { asked, refused }: SettingsReport, ids?: readonly string[]): TrainerSettings {
  const sessionOf = (headers: FakeBackend['requests'][number]['headers']) => String(headers['x-session-id']);
  const requests = backend.requests.filter(({ headers }) => ids === undefined || ids.includes(sessionOf(headers)));
  assert.ok(requests.length > 0, 'the LLM server received requests of these rollouts');
  for (const { sampling, headers } of requests) {
    for (const [setting, [field, value]] of Object.entries(asked)) {
      assert.deepEqual(
        findReceived(sampling[field], field, value),
        value,
        `${setting} as ${field} of ${sessionOf(headers)}: ${JSON.stringify(sampling)}`,
      );
    }
  }
  const lengths = Object.values(asked).filter(([field]) => field === 'max_tokens');
  for (const [, value] of lengths) assert.ok(requests.some(({ sampling }) => sampling.max_tokens === value));
  for (const [setting, message] of Object.entries(refused)) assert.ok(message.includes(`'${setting}' of `), message);
  const named = Object.keys(refused).filter((name) => name !== unknownSetting);
  return {
    ...Object.fromEntries(Object.entries(asked).map(([setting, [field]]) => [setting, field])),
    ...Object.fromEntries(named.map((name) => [name, 'refused'])),
  };
}
