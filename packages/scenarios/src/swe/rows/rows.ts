// Recognises a row of a data set by its fields, and makes a task of it.

import { isRow, toColumns } from '../../row.ts';
import { fromMultiSwe } from './multi-swe.ts';
import { parseJson, type SweRow } from './row.ts';
import { fromR2e, fromSmith, fromSweBench } from './swe-bench.ts';

export const rowKinds = ['swe-bench', 'swe-gym', 'swe-rebench', 'swe-smith', 'r2e-gym', 'multi-swe', 'nemotron'] as const;
export type RowKind = (typeof rowKinds)[number];

/** The options of a task that may stand next to the fields of a row. */
const options = [
  'image',
  'workdir',
  'setup',
  'activate',
  'hidden',
  'test_setup',
  'test_command',
  'test_timeout_s',
  'log_parser',
  'protected',
  'tools',
  'memory_mib',
  'disk_mib',
  'shaping',
] as const;

/** The task of a row. Throws an Error that names the field. */
export function toTask(row: SweRow, kind: RowKind): SweRow {
  const own = Object.fromEntries(options.filter((name) => row[name] !== undefined).map((name) => [name, row[name]]));
  return { ...convert(row, kind), ...own };
}

/** Undefined if it is no row of a known data set, or already a task. */
export function kindOf(row: SweRow): RowKind | undefined {
  if ('responses_create_params' in row || 'instance_dict' in row) return 'nemotron';
  if ('fix_patch' in row) return 'multi-swe';
  if ('expected_output_json' in row) return 'r2e-gym';
  if (!('instance_id' in row)) return undefined;
  const repo = typeof row.repo === 'string' ? row.repo : '';
  if (repo.startsWith('swesmith/') || ('image_name' in row && !('test_patch' in row) && 'patch' in row)) return 'swe-smith';
  if ('install_config' in row || 'docker_image' in row) return 'swe-rebench';
  if ('test_command' in row && !hasRowFields(row)) return undefined;
  return 'FAIL_TO_PASS' in row || 'test_patch' in row ? 'swe-bench' : undefined;
}

/** Fields that rows of SWE-bench have and tasks have not, or in another form: a row may have a test command of its own. */
const hasRowFields = (row: SweRow): boolean =>
  ['version', 'hints_text', 'created_at', 'environment_setup_commit'].some((name) => name in row) || typeof row.FAIL_TO_PASS === 'string';

function convert(row: SweRow, kind: RowKind): SweRow {
  switch (kind) {
    case 'nemotron':
      return fromNemotron(row);
    case 'multi-swe':
      return fromMultiSwe(row);
    case 'r2e-gym':
      return fromR2e(row);
    case 'swe-smith':
      return fromSmith(row);
    case 'swe-bench':
    case 'swe-gym':
    case 'swe-rebench':
      return fromSweBench(row, kind);
  }
}

/** Rows of NeMo Gym: the row of the original data set is JSON text inside the metadata of the request. */
function fromNemotron(row: SweRow): SweRow {
  const request = isRow(row.responses_create_params) ? row.responses_create_params : row;
  const metadata = isRow(request.metadata) ? request.metadata : request;
  const text = metadata.instance_dict ?? row.instance_dict;
  const inner = typeof text === 'string' ? parseJson(text, 'instance_dict') : text;
  if (!isRow(inner)) throw new Error('instance_dict is not an object');
  const statement = metadata.problem_statement ?? inner.problem_statement;
  const merged: SweRow = toColumns({ ...inner, problem_statement: statement });
  const source = String(metadata.dataset_name ?? '');
  const kind = kindOf(merged);
  if (kind === undefined || kind === 'nemotron') throw new Error('instance_dict is no row of a known data set');
  return convert(merged, kind === 'swe-bench' && /swe-?gym/i.test(source) ? 'swe-gym' : kind);
}
