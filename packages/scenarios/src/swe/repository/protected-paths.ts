// Which files of a patch are restored before the tests run: tests that the repository has, and files that steer the test run instead of
// repairing the bug.

import type { ChangedPath } from './take-diff.ts';

/** Files that pytest, tox, Python's start or the installed package read on their own. */
const steering =
  /(^|\/)(conftest\.py|pytest\.ini|\.pytest\.ini|pytest\.toml|\.pytest\.toml|tox\.ini|noxfile\.py|sitecustomize\.py|usercustomize\.py|[^/]+\.pth|\.coveragerc|\.env)$|(^|\/)[^/]+\.(egg-info|dist-info|egg-link)(\/|$)|(^|\/)(\.venv|venv|node_modules|site-packages)\//;

/** They also hold other settings, and are restored unless the reference solution changes them too. */
const settings = /(^|\/)(setup\.cfg|pyproject\.toml)$/;

/** Modules that shadow the test runner when the repository comes first on Python's path. */
const shadows = /^(src\/|lib\/)?(pytest|_pytest|pluggy|unittest|nose|py|tox|nox|iniconfig|xdist|django_test_runner)(\.py|\/)/;

const tests = /(^|\/)(tests?|testing)\/|(^|\/)(test_[^/]*|[^/]*_test|tests)\.py$|\.(test|spec)\.[cm]?[jt]sx?$|_test\.go$/;

interface ProtectOptions {
  /** Paths that the test patch touches. */
  readonly testFiles: readonly string[];
  /** Paths that the reference solution touches. */
  readonly solutionFiles: readonly string[];
  /** More paths, from the task; folders end with a slash. */
  readonly extra: readonly string[];
  /** The repository of the test runner itself may change its own modules. */
  readonly repo: string;
}

/** A path that the reference solution changes is not restored, unless it belongs to the test patch. */
export function chooseProtected(paths: readonly ChangedPath[], options: ProtectOptions): ChangedPath[] {
  const { testFiles, solutionFiles, extra, repo } = options;
  const isRunner = /(^|\/)(pytest|tox|nox|pluggy)$/.test(repo);
  return paths.filter(({ status, path }) => {
    if (testFiles.some((one) => isWithin(path, one) || isWithin(one, path)) || extra.some((one) => isWithin(path, one))) return true;
    if (solutionFiles.includes(path)) return false;
    if (steering.test(path) || settings.test(path) || (!isRunner && shadows.test(path))) return true;
    return status !== 'A' && tests.test(path);
  });
}

const isWithin = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
