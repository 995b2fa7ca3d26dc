// What trainers post back, as rows: samples are compressed before the transaction begins.

import type { TrainerSample } from '@millrace/protocol';
import type { TrainerStore } from '../trainer-store.ts';
import { compress, decompress } from './compression.ts';
import type { ReplyOf } from './operation-link.ts';
import type { StoredSample } from './operations/trainer.ts';
import type { Reads, Writes } from './operations.ts';

interface TrainerCalls {
  write<Name extends 'putTrainerStep'>(name: Name, request: Parameters<Writes[Name]>[1]): Promise<ReplyOf<Writes, Name>>;
  read<Name extends 'trainerSteps' | 'trainerRuns' | 'trainerSamples'>(
    name: Name,
    request: Parameters<Reads[Name]>[1],
  ): Promise<ReplyOf<Reads, Name>>;
}

export function openTrainerRows({ read, write }: TrainerCalls): TrainerStore {
  return {
    async putTrainerStep(step, samples) {
      const stored: StoredSample[] = [];
      for (const { rollout_id: rollout, branch, ...sample } of samples)
        stored.push({ rollout, branch, body: await compress(Buffer.from(JSON.stringify({ branch, ...sample }))) });
      return await write('putTrainerStep', { step, samples: stored });
    },
    trainerSteps: (query) => read('trainerSteps', query),
    trainerRuns: () => read('trainerRuns', undefined),
    async trainerSamples(rollout) {
      const rows = await read('trainerSamples', rollout);
      return await Promise.all(
        rows.map(async ({ run, step, at, step_body, body }) => {
          const sample: TrainerSample = { rollout_id: rollout, ...JSON.parse((await decompress(body)).toString('utf8')) };
          return { run, step, atMs: at, policyVersion: JSON.parse(step_body).policy_version ?? null, sample };
        }),
      );
    },
  };
}
