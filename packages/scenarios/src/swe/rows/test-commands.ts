// How the tests of a repository are run, for data sets whose rows do not say it: SWE-bench and SWE-Gym.

import type { LogParserName } from '../logs/parse-log.ts';
import { filesOf, quote } from './row.ts';

interface TestSpec {
  readonly command: string;
  readonly parser: LogParserName;
  /** How a test file of the patch is named in the command. */
  readonly toArgument?: (path: string) => string;
}

/** Names of modules instead of files: `tests/queries/test_q.py` is `queries.test_q`. */
const djangoName = (path: string): string =>
  path
    .replace(/\.py$/, '')
    .replace(/^tests\//, '')
    .replaceAll('/', '.');

const pytest: TestSpec = { command: 'pytest -rA', parser: 'pytest' };

const specs: Readonly<Record<string, TestSpec>> = {
  'astropy/astropy': { command: 'pytest -rA', parser: 'pytest_v2' },
  'django/django': {
    command: './tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1',
    parser: 'django',
    toArgument: djangoName,
  },
  'matplotlib/matplotlib': { command: 'pytest -rA', parser: 'matplotlib' },
  'mwaskom/seaborn': { command: 'pytest --no-header -rA', parser: 'seaborn' },
  'pallets/flask': pytest,
  'psf/requests': { command: 'pytest -rA', parser: 'pytest_options' },
  'pydata/xarray': pytest,
  'pydicom/pydicom': { command: 'pytest -rA', parser: 'pytest_options' },
  'pylint-dev/pylint': { command: 'pytest -rA', parser: 'pytest_options' },
  'pytest-dev/pytest': pytest,
  'scikit-learn/scikit-learn': { command: 'pytest -rA', parser: 'pytest_v2' },
  'sphinx-doc/sphinx': { command: 'tox --current-env -epy39 -v --', parser: 'pytest_v2' },
  'sympy/sympy': {
    command: "PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose",
    parser: 'sympy',
  },
  // SWE-Gym
  'pandas-dev/pandas': { command: 'pytest -rA --tb=long', parser: 'pytest' },
  'python/mypy': { command: 'pytest -rA -k', parser: 'pytest' },
  'modin-project/modin': { command: 'pytest -n0 -rA', parser: 'pytest' },
  'conan-io/conan': { command: 'pytest -n0 -rA', parser: 'pytest' },
  'pydantic/pydantic': { command: 'pytest -rA --tb=short -vv -o console_output_style=classic --no-header', parser: 'pytest' },
  'iterative/dvc': pytest,
  'dask/dask': { command: 'pytest -n0 -rA --color=no', parser: 'pytest' },
  'bokeh/bokeh': { command: 'pytest -rA -n0', parser: 'pytest' },
  'facebookresearch/hydra': pytest,
  'getmoto/moto': { command: 'pytest -n0 -rA', parser: 'pytest' },
  'Project-MONAI/MONAI': pytest,
};

/** Data files of a test patch are no tests. */
const isNoTest = /\.(json|png|csv|txt|md|jpe?g|pkl|ya?ml|toml)$/;

interface TestRunSpec {
  readonly test_command: string;
  readonly log_parser: LogParserName;
}

/** Runs the test files of the patch, as the harness of SWE-bench does. mypy runs the cases that the patch adds, by their names. */
export function toTestRun(repo: string, testPatch: string): TestRunSpec {
  const { command, parser, toArgument = quote } = specs[repo] ?? pytest;
  if (repo === 'python/mypy') {
    const cases = [...testPatch.matchAll(/^\+?\[case ([^\]\n]+)\]/gm)].map(([, name = '']) => name);
    return { test_command: `${command} ${quote(cases.join(' or '))}`, log_parser: parser };
  }
  const files = filesOf(testPatch).filter((path) => !isNoTest.test(path));
  return { test_command: [command, ...files.map(toArgument)].join(' '), log_parser: parser };
}
