// Rows of Multi-SWE-bench and Multi-SWE-RL: `org`, `repo`, `number`, `base`, `fix_patch`, `test_patch`, and the tests by how they change.

import { definedOf } from '@millrace/protocol';
import { z } from 'zod';
import { isRow } from '../../row.ts';
import type { LogParserName } from '../logs/parse-log.ts';
import { parseJson, type SweRow, textOf } from './row.ts';

const parserOf: Readonly<Record<string, LogParserName>> = {
  go: 'gotest',
  golang: 'gotest',
  rust: 'cargo',
  python: 'pytest',
  java: 'maven',
  typescript: 'jest',
  javascript: 'jest',
};

const testMap = z.record(z.string(), z.unknown());
const issues = z.array(z.object({ title: z.string().nullish(), body: z.string().nullish() }));

/** Their images hold the repository in /home, and with it the patches and the scripts that apply them. */
export function fromMultiSwe(row: SweRow): SweRow {
  const [org, repo] = [textOf(row, 'org') ?? '', textOf(row, 'repo') ?? ''];
  const number = String(row.number ?? '');
  const base = isRow(row.base) ? textOf(row.base, 'sha') : undefined;
  const language = (textOf(row, 'language', 'lang') ?? '').toLowerCase();
  const named = issues.safeParse(row.resolved_issues).data?.map(({ title, body }) => `${title ?? ''}\n\n${body ?? ''}`.trim());
  return definedOf({
    instance_id: textOf(row, 'instance_id') ?? `${org}__${repo}-${number}`,
    repo: `${org}/${repo}`,
    base_commit: base,
    problem_statement: textOf(row, 'problem_statement') ?? (named?.length ? named.join('\n\n') : textOf(row, 'title', 'body')),
    image: `docker://mswebench/${org}_m_${repo}:pr-${number}`.toLowerCase(),
    workdir: `/home/${repo}`,
    hidden: ['/home/fix.patch', '/home/test.patch', '/home/fix-run.sh', '/home/test-run.sh', '/home/run.sh'],
    test_command: 'bash /home/run.sh',
    test_patch: textOf(row, 'test_patch'),
    log_parser: parserOf[language],
    FAIL_TO_PASS: ['f2p_tests', 's2p_tests', 'n2p_tests'].flatMap((field) => namesOf(row, field)),
    PASS_TO_PASS: namesOf(row, 'p2p_tests'),
    patch: textOf(row, 'fix_patch'),
  });
}

function namesOf(row: SweRow, field: string): string[] {
  const value = row[field];
  const parsed = testMap.safeParse(typeof value === 'string' ? parseJson(value, field) : (value ?? {}));
  if (!parsed.success) throw new Error(`${field} is not a map of test names`);
  return Object.keys(parsed.data);
}
