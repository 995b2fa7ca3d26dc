// The task of a group is stored once, in its row. The submissions of its siblings are stored without it and get it back when they are
// read.

import type { Submission } from '@millrace/protocol';

/** The task of the group of a row in `rollouts`; null for a rollout without a group. */
export const groupTaskColumn = `CASE rollouts.is_sibling WHEN 1 THEN (SELECT mine.task FROM siblings AS own
  JOIN batch_groups AS mine ON mine.seq = own.group_seq WHERE own.seq = rollouts.seq) END AS group_task`;

/** `body` and `task` are JSON. The result has no task if the group has the same. */
export function toStoredBody({ body, task, groupTask }: { body: string; task: string; groupTask?: string | undefined }): string {
  return task === groupTask ? body : `{"task":${task},${body.slice(1)}`;
}

export function toSubmission({ body, group_task: task }: { readonly body: string; readonly group_task: string | null }): Submission {
  const submission = JSON.parse(body);
  return task === null || 'task' in submission ? submission : { ...submission, task: JSON.parse(task) };
}
