// How a rollout ends that took two workers in evaluate, if its next one dies there too.

import { text } from './columns.ts';

export const lossTables = `
CREATE TABLE loss_endings (
  seq bigint PRIMARY KEY,
  attempt bigint NOT NULL,
  result text NOT NULL,
  body bytea NOT NULL,
  blob ${text},
  bytes bigint
);
ALTER TABLE loss_endings ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TRIGGER loss_ending_deleted AFTER DELETE ON loss_endings FOR EACH ROW WHEN (OLD.blob IS NOT NULL) EXECUTE FUNCTION note_garbage();
`;
