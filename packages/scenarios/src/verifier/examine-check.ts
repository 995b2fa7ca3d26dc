// Examines a check script in a grader's thread, so that no script blocks the process that accepts or judges a task.

import { gradeInThread } from './graders.ts';
import { type LintOptions, lintCheck } from './lint/lint-check.ts';
import type { LintFinding } from './lint/lint-finding.ts';

/** Ten times what the largest script without tricks takes. */
const cpuMs = 2000;

/** As `lintCheck` does; a warning if that takes too long. */
export async function examineCheck(script: string, options: LintOptions = {}): Promise<readonly LintFinding[]> {
  const findings = await gradeInThread(lintCheck, [script, options] as const, { cpuMs });
  const message = 'the script takes too long to examine, and was not';
  return findings ?? [{ rule: 'syntax', severity: 'warning', line: 1, message }];
}
