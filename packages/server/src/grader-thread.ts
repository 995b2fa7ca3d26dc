// The entry of a grader's thread: the functions that read the texts of agents. None of them loads schemas, so that a thread starts fast.

import { serveFunctions } from './base/threads/serve-functions.ts';
import { findProgram } from './scenario/code/find-program.ts';
import { compareRuns } from './scenario/code/output/compare-runs.ts';
import { judgeMath } from './scenario/math/judge-math.ts';
import { judgeStem } from './scenario/stem/judge-stem.ts';
import { readSuite } from './scenario/swe/grade/read-suite.ts';
import { chooseProtected } from './scenario/swe/repository/protected-paths.ts';

serveFunctions([findProgram, compareRuns, judgeMath, judgeStem, readSuite, chooseProtected]);
