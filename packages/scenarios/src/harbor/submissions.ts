// Submissions for Harbor task folders: what `millrace submit --harbor` sends, with the time limits that each task.toml asks for.

import { resolve } from 'node:path';
import { messageOf, type SubmissionInput } from '@millrace/protocol';
import { digestTask, findTaskFolders, readTaskFolder, type TaskFolder } from './task-folder.ts';

interface HarborSubmission {
  /** The folder as the caller named it, for messages. */
  readonly folder: string;
  readonly submission: SubmissionInput;
}

interface HarborFault {
  readonly folder: string;
  readonly reason: string;
}

/** For sandboxes and files around a check. */
const marginS = 60;

/** `path` is a task folder, or a folder that contains some at any depth. Every folder that cannot be run is listed with its reason. */
export async function readHarborSubmissions(path: string): Promise<{ submissions: HarborSubmission[]; faults: HarborFault[] }> {
  const submissions: HarborSubmission[] = [];
  const faults: HarborFault[] = [];
  for (const folder of await findTaskFolders(path)) {
    try {
      const read = await readTaskFolder(folder);
      const task = { folder: resolve(folder), digest: await digestTask(folder) };
      submissions.push({ folder, submission: { scenario: 'harbor', task, limits: toLimits(read) } });
    } catch (error) {
      faults.push({ folder, reason: messageOf(error) });
    }
  }
  return { submissions, faults };
}

/** A separate verifier may have an image of its own, which its first check builds. */
function toLimits({ toml, mode }: TaskFolder): NonNullable<SubmissionInput['limits']> {
  const buildS = toml.environment.build_timeout_sec;
  const verifierBuildS = mode === 'separate' ? (toml.verifier.environment?.build_timeout_sec ?? buildS) : 0;
  return {
    init_timeout_s: buildS + marginS,
    ...(toml.agent.timeout_sec === undefined ? {} : { run_timeout_s: toml.agent.timeout_sec }),
    evaluate_timeout_s: Math.ceil(toml.verifier.timeout_sec / 0.9) + verifierBuildS + marginS,
  };
}
