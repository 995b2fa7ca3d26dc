// Rows of SWE-bench and of the data sets that follow its fields: SWE-Gym, SWE-rebench, SWE-smith and R2E-Gym.

import { definedOf } from '@millrace/protocol';
import { z } from 'zod';
import { isRow } from '../../row.ts';
import { toLogParserName } from '../logs/parse-log.ts';
import { replacePatch, reversePatch } from './patch-text.ts';
import { filesOf, listOf, parseJson, type SweRow, textOf, toImage, toImageName } from './row.ts';
import { toTestRun } from './test-commands.ts';

/** The images of SWE-bench hold one conda environment. Others are used as they are. */
const activate = 'if [ -f /opt/miniconda3/bin/activate ]; then source /opt/miniconda3/bin/activate && conda activate testbed; fi';

const images = {
  'swe-bench': { prefix: 'swebench/sweb.eval.x86_64.', replacement: '_1776_' },
  'swe-gym': { prefix: 'xingyaoww/sweb.eval.x86_64.', replacement: '_s_' },
  'swe-rebench': { prefix: 'swerebench/sweb.eval.x86_64.', replacement: '_1776_' },
} as const;

/** Repositories of SWE-Gym, whose rows have the fields of SWE-bench but other images. */
const gymRepos =
  /^(pandas-dev\/pandas|getmoto\/moto|python\/mypy|dask\/dask|Project-MONAI\/MONAI|pydantic\/pydantic|conan-io\/conan|facebookresearch\/hydra|iterative\/dvc|bokeh\/bokeh|modin-project\/modin)$/i;

export function fromSweBench(row: SweRow, kind: keyof typeof images): SweRow {
  const id = textOf(row, 'instance_id') ?? '';
  const repo = textOf(row, 'repo') ?? '';
  const testPatch = textOf(row, 'test_patch') ?? '';
  const { prefix, replacement } = images[kind === 'swe-bench' && gymRepos.test(repo) ? 'swe-gym' : kind];
  const named = textOf(row, 'image_name', 'docker_image', 'image_url');
  return definedOf({
    instance_id: id,
    repo,
    base_commit: textOf(row, 'base_commit', 'parent_commit'),
    problem_statement: textOf(row, 'problem_statement'),
    image: named === undefined ? toImageName(prefix, id, replacement) : toImage(named),
    activate,
    test_patch: testPatch,
    FAIL_TO_PASS: listOf(row, 'FAIL_TO_PASS'),
    PASS_TO_PASS: listOf(row, 'PASS_TO_PASS'),
    patch: textOf(row, 'patch'),
    eval_type: textOf(row, 'eval_type'),
    ...toRun(row, repo, testPatch),
  });
}

/** From the row where it says how the tests are run, otherwise from the table. */
function toRun(row: SweRow, repo: string, testPatch: string): SweRow {
  const known = toTestRun(repo, testPatch);
  const install = typeof row.install_config === 'string' ? parseJson(row.install_config, 'install_config') : row.install_config;
  const config = isRow(install) ? install : {};
  const command = textOf(row, 'test_cmd') ?? textOf(config, 'test_cmd');
  const parser = textOf(row, 'log_parser') ?? textOf(config, 'log_parser');
  const name = parser === undefined ? undefined : toLogParserName(parser);
  if (parser !== undefined && name === undefined) throw new Error(`log_parser ${parser} is not known`);
  const files = filesOf(testPatch).join(' ');
  return {
    test_command: textOf(row, 'eval_script') ?? (command === undefined ? known.test_command : `${command} ${files}`.trim()),
    log_parser: name ?? known.log_parser,
  };
}

/** The patch of a row puts the bug in; the solution is its reverse. */
export function fromSmith(row: SweRow): SweRow {
  const bug = textOf(row, 'patch') ?? '';
  const image = textOf(row, 'image_name');
  return definedOf({
    instance_id: textOf(row, 'instance_id'),
    repo: textOf(row, 'repo'),
    problem_statement: textOf(row, 'problem_statement'),
    image: image === undefined ? undefined : toImage(image),
    activate,
    setup_patch: bug,
    test_command: textOf(row, 'test_cmd') ?? 'pytest --disable-warnings --color=no --tb=no --verbose',
    log_parser: 'pytest_verbose',
    FAIL_TO_PASS: listOf(row, 'FAIL_TO_PASS'),
    PASS_TO_PASS: listOf(row, 'PASS_TO_PASS'),
    patch: reversePatch(bug),
  });
}

const fileDiff = z.object({
  header: z.object({ file: z.object({ path: z.string() }) }),
  is_binary_file: z.boolean().optional(),
  old_file_content: z.string().nullish(),
  new_file_content: z.string().nullish(),
});
const commit = z.object({ file_diffs: z.array(fileDiff) });
const commitHash = /[0-9a-f]{40}/;

/** Its tests are in the image, outside the repository, with a script that runs them. */
export function fromR2e(row: SweRow): SweRow {
  const text = textOf(row, 'expected_output_json') ?? '{}';
  const expected = z.record(z.string(), z.string()).safeParse(parseJson(text, 'expected_output_json'));
  if (!expected.success) throw new Error('expected_output_json is not a map of test names');
  const content = textOf(row, 'parsed_commit_content');
  const parsed = content === undefined ? undefined : commit.safeParse(parseJson(content, 'parsed_commit_content')).data;
  const image = textOf(row, 'docker_image', 'image_name');
  const repo = textOf(row, 'repo_name', 'repo') ?? '';
  const hash = commitHash.exec(image ?? '')?.[0] ?? textOf(row, 'commit_hash') ?? '';
  return definedOf({
    instance_id: textOf(row, 'instance_id') ?? `${repo}__${hash}`,
    repo,
    problem_statement: textOf(row, 'problem_statement', 'prompt'),
    image: image === undefined ? undefined : toImage(image),
    hidden: ['/r2e_tests', '/testbed/r2e_tests', '/testbed/run_tests.sh'],
    test_setup: '[ -e r2e_tests ] || [ ! -d /r2e_tests ] || ln -s /r2e_tests r2e_tests',
    test_command: 'bash run_tests.sh',
    log_parser: 'r2e',
    protected: ['r2e_tests/', 'run_tests.sh'],
    expected: Object.fromEntries(Object.entries(expected.data).map(([name, status]) => [(name.split(' - ')[0] ?? '').trim(), status])),
    patch: parsed?.file_diffs
      .filter(({ is_binary_file, header }) => !is_binary_file && !/(^|\/)tests?\//.test(header.file.path))
      .map((one) => replacePatch(one.header.file.path, one.old_file_content ?? '', one.new_file_content ?? ''))
      .join(''),
  });
}
