// Runs a program of a trainer's own code. Its packages are compiled once, into the folder of its environment: they are large, and compiling
// them takes longer than the tests.

import { dirname, join } from 'node:path';
import { runTrainer, type TrainerRun } from '../bed/trainer-service.ts';

export function runAdapter(url: string, run: TrainerRun): Promise<unknown> {
  const env = { ...run.env, PYTHONDONTWRITEBYTECODE: '', PYTHONPYCACHEPREFIX: join(dirname(run.python), '../pycache') };
  return runTrainer(url, { ...run, env });
}
