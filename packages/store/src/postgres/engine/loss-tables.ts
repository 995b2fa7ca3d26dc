// The fourth schema: workers that died while a rollout was in evaluate, and how it ends if its next one does. Processes of the versions
// before neither count nor judge: what they leave belongs to an attempt that is over.

import { text } from './columns.ts';

export const lossTables = `
ALTER TABLE rollouts ADD COLUMN evaluate_losses bigint NOT NULL DEFAULT 0;
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
