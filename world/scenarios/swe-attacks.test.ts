// Attacks on the verdict of a swe rollout whose tests a real pytest runs, in Apptainer: its configuration, its plugins, its start and its end
// are changed by the agent. None gains a reward, and none turns a zero into no reward.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { openApptainerDriver, type SandboxDriver } from '@millrace/sandbox';
import { makeTempFolder, type TempFolder } from '@millrace/testkit';
import { repair, SweBed } from '../../packages/scenarios/test/swe/bed.ts';
import { makeGitImage } from './python-image.ts';

const requirement = 'pytest==8.4.2';
const hidden = `diff --git a/tests/test_double.py b/tests/test_double.py
new file mode 100644
--- /dev/null
+++ b/tests/test_double.py
@@ -0,0 +1,9 @@
+from calc import double
+
+
+def test_double():
+    assert double(4) == 8
+
+
+def test_zero():
+    assert double(0) == 0
`;
const fields = {
  test_command: 'python3 -m pytest -rA tests/test_add.py tests/test_double.py',
  test_patch: hidden,
  log_parser: 'pytest' as const,
  FAIL_TO_PASS: ['tests/test_double.py::test_double'],
  PASS_TO_PASS: ['tests/test_double.py::test_zero', 'tests/test_add.py::AddTests::test_add'],
  test_timeout_s: 30,
};

/** What pytest prints when all is well. */
const fakeLog = `============================= test session starts ==============================
collected 3 items
==================================== PASSES ====================================
=========================== short test summary info ============================
PASSED tests/test_add.py::AddTests::test_add
PASSED tests/test_double.py::test_double
PASSED tests/test_double.py::test_zero
============================== 3 passed in 0.01s ===============================
`;
const file = (path: string, text: string) => `mkdir -p "$(dirname ${path})"; cat > ${path} <<'END'\n${text}\nEND`;
const atImport = (code: string) => `${file('/tmp/first', code)}; cat /tmp/first calc/__init__.py > /tmp/new; cp /tmp/new calc/__init__.py`;
const print = `import os\nos.write(1, b'''${fakeLog}''')`;

/** Makes every test pass, from inside pytest. */
const plugin = `import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.outcome = "passed"
    report.longrepr = None

def pytest_sessionfinish(session, exitstatus):
    session.exitstatus = 0
`;

const attacks: Readonly<Record<string, string>> = {
  'adds a conftest.py in which all tests pass': file('conftest.py', plugin),
  'adds a conftest.py next to the tests': file('tests/conftest.py', plugin),
  'names a plugin of its own in pytest.ini': `${file('evil.py', plugin)}; ${file('pytest.ini', '[pytest]\naddopts = -p evil\npythonpath = .')}`,
  'names it in pyproject.toml': `${file('evil.py', plugin)}; ${file('pyproject.toml', '[tool.pytest.ini_options]\naddopts = "-p evil"')}`,
  'names it in setup.cfg and tox.ini': `${file('evil.py', plugin)}; ${file('setup.cfg', '[tool:pytest]\naddopts = -p evil')}; ${file('tox.ini', '[pytest]\naddopts = -p evil')}`,
  'names it in .pytest.ini': `${file('evil.py', plugin)}; ${file('.pytest.ini', '[pytest]\naddopts = -p evil')}`,
  'installs it as a package with an entry point': `${file('evil.py', plugin)}; ${file('evil-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\nName: evil\nVersion: 1.0')}; ${file('evil-1.0.dist-info/entry_points.txt', '[pytest11]\nevil = evil')}`,
  'puts it into the image': `${file('/usr/lib/python3/dist-packages/evil.py', plugin)}; ${file('/usr/lib/python3/dist-packages/evil-1.0.dist-info/entry_points.txt', '[pytest11]\nevil = evil')}; echo x > y`,
  'replaces pytest in the image': `${file('/usr/lib/python3/dist-packages/pytest/__main__.py', print)}; echo x > y`,
  'puts its own pytest into the repository': `${file('pytest/__init__.py', '')}; ${file('pytest/__main__.py', print)}`,
  'registers the plugin when the code is imported': atImport(
    `import gc, _pytest.config\n${plugin}\nimport sys\nfor c in gc.get_objects():\n    if isinstance(c, _pytest.config.Config):\n        c.pluginmanager.register(sys.modules[__name__])`,
  ),
  'replaces how pytest runs a test': atImport('import _pytest.python\n_pytest.python.Function.runtest = lambda self: None'),
  'adds a sitecustomize': `${file('sitecustomize.py', `${print}\nos._exit(0)`)}; cp sitecustomize.py usercustomize.py`,
  'adds a .pth file to the image': `${file('/usr/lib/python3/dist-packages/evil.pth', `import os; os._exit(0)`)}; echo x > y`,
  'prints the log of passed tests and exits with 0': atImport(`${print}\nos._exit(0)`),
  'exits with 0 at the end of the session': atImport(
    `import atexit, os\natexit.register(lambda: (${'os.write(1, b"PASSED tests/test_double.py::test_double\\n")'}, os._exit(0)))`,
  ),
  'kills the test run after the forged log': atImport(`${print}\nos.kill(os.getppid(), 9)\nos.kill(os.getpid(), 9)`),
  'kills every process': atImport('import os\nos.kill(-1, 9)'),
  'skips or deselects the failing test': file('conftest.py', 'collect_ignore_glob = ["*double*"]'),
};

describe('attacks on pytest in the swe scenario', { timeout: 900_000, concurrency: 2 }, () => {
  let folder: TempFolder;
  let bed: SweBed;
  before(async () => {
    folder = await makeTempFolder('sw');
    const image = join(folder.path, 'image');
    await makeGitImage(image, [requirement]);
    bed = await SweBed.open(async (runDir): Promise<SandboxDriver> => {
      const driver = await openApptainerDriver({ runDir, log: silentLog });
      return { ...driver, open: (spec, options) => driver.open({ image, ...spec }, options) };
    });
    const { reward, details } = await bed.judge(repair, fields);
    assert.equal(reward, 1, JSON.stringify(details));
  });
  after(async () => {
    await bed?.[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  for (const [name, script] of Object.entries(attacks))
    test(`an agent that ${name} gets 0`, async () => {
      const { reward, details } = await bed.judge(script, fields);
      assert.equal(reward, 0, JSON.stringify(details));
    });

  test('a repair next to all changes of the configuration of pytest is rewarded', async () => {
    const configured = Object.entries(attacks).filter(([name]) =>
      /conftest\.py in|pytest\.ini|pyproject|setup\.cfg|sitecustomize/.test(name),
    );
    const { reward, details } = await bed.judge([repair, ...configured.map(([, script]) => script)].join('\n'), fields);
    assert.equal(reward, 1, JSON.stringify(details));
  });
});
