// What trainers post back: their steps, and what they computed for tokens of rollouts.

import { seq, text } from './columns.ts';

export const trainerTables = `
CREATE TABLE trainer_steps (
  ${seq},
  run ${text} NOT NULL,
  step bigint NOT NULL,
  at bigint NOT NULL,
  samples bigint NOT NULL,
  body text NOT NULL,
  UNIQUE (run, step)
);
CREATE INDEX trainer_steps_at ON trainer_steps (at);
CREATE TABLE trainer_samples (
  rollout ${text} NOT NULL,
  step_seq bigint NOT NULL,
  branch bigint NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (rollout, step_seq, branch)
);
ALTER TABLE trainer_samples ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX trainer_samples_step ON trainer_samples (step_seq);
`;
