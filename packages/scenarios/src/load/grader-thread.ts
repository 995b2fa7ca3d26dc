// The entry of a grader's thread: the functions that read the texts of agents and callers. It loads no schemas, so that a thread starts fast.

import { serveFunctions } from '@millrace/base/threads/serve-functions';
import { parseLongTurn } from '@millrace/model';
import { findProgram } from '../code/find-program.ts';
import { compareRuns } from '../code/output/compare-runs.ts';
import { readCodeRow } from '../code/rows/read-code-row.ts';
import { findTestFault } from '../code/test-fault.ts';
import { judgeMath } from '../math/judge-math.ts';
import { judgeStem } from '../stem/judge-stem.ts';
import { readSuite } from '../swe/grade/read-suite.ts';
import { chooseProtected } from '../swe/repository/protected-paths.ts';
import { readSweRow } from '../swe/rows/read-swe-row.ts';
import { lintCheck } from '../verifier/lint/lint-check.ts';

serveFunctions([
  parseLongTurn,
  findProgram,
  compareRuns,
  judgeMath,
  judgeStem,
  readSuite,
  chooseProtected,
  lintCheck,
  findTestFault,
  readCodeRow,
  readSweRow,
]);
