// The swe scenario end to end in bubblewrap: what the agent sees, the diff that we take, and the verdict of the tests.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { makeTask, repair, SweBed } from './bed.ts';

describe('the swe scenario', { timeout: 300_000, concurrency: 2 }, () => {
  let bed: SweBed;
  before(async () => {
    bed = await SweBed.open();
  });
  after(async () => await bed[Symbol.asyncDispose]());

  test('a repair has reward 1, with the diff that we took', async () => {
    const { reward, details } = await bed.judge(repair);
    assert.equal(reward, 1, JSON.stringify(details));
    assert.match(String(details?.git_patch), /^diff --git a\/calc\/__init__\.py[\s\S]*\+ {4}return a \* 2\n$/);
    assert.deepEqual([details?.applied_by, details?.attested, details?.exit_code], ['git apply --verbose', true, 0]);
  });

  test('a patch that repairs nothing, no patch, and a regression have reward 0', async () => {
    const wrong = await bed.judge("sed -i 's/a \\* 3/a * 5/' calc/__init__.py");
    assert.deepEqual([wrong.reward, wrong.details?.reason], [0, undefined]);
    assert.deepEqual(wrong.details?.fail_to_pass, { passed: 0, failed: ['test_double (tests.test_double.DoubleTests.test_double)'] });
    assert.deepEqual([(await bed.judge('true')).reward, (await bed.judge('true')).details?.reason], [0, 'empty_patch']);
    const regression = await bed.judge(`${repair}; sed -i 's/a + b/a - b/' calc/__init__.py`);
    assert.deepEqual(
      [regression.reward, regression.details?.pass_to_pass],
      [0, { passed: 1, failed: ['test_add (tests.test_add.AddTests.test_add)'] }],
    );
  });

  test('the diff has new, deleted, renamed and committed files, and no ignored ones', async () => {
    const script = `${repair}; git mv NOTES OLD; mkdir -p calc/new; echo 'x = 1' > calc/new/mod.py; ln -s mod.py calc/new/link.py; touch -d 2001-01-01 calc/new/mod.py
      git -c user.name=a -c user.email=a@b commit -q -a -m mine; echo secret > calc/a.log; echo other > build/artefact; git rm -q tests/__init__.py --cached`;
    const { reward, details } = await bed.judge(script);
    const files = [...String(details?.git_patch).matchAll(/^diff --git a\/(\S+)/gm)].map(([, name]) => name);
    assert.deepEqual(files.sort(), ['NOTES', 'OLD', 'calc/__init__.py', 'calc/new/link.py', 'calc/new/mod.py']);
    assert.equal(reward, 1);
  });

  test('the agent finds no trace of the fix in the repository', async () => {
    await using sandbox = await bed.openAgent(makeTask());
    const run = async (script: string) => {
      const { stdout } = await sandbox.exec(['/bin/bash', '-c', script], {
        cwd: '/workspace/repo',
        timeoutMs: 60_000,
        env: { HOME: '/workspace' },
      });
      return stdout.toString('utf8').trim();
    };
    const objects =
      "git cat-file --batch-all-objects --batch-check='%(objectname)' | while read id; do git cat-file -p $id; done | grep -c the-fix";
    assert.equal(await run(objects), '0');
    assert.equal(
      await run('grep -rl the-fix . ; ls .git/logs .git/hooks .git/ORIG_HEAD 2>/dev/null; git remote; git stash list; git reflog'),
      '',
    );
    assert.equal(await run('git log --format=%s --all; git tag; git status --short; git branch --show-current'), 'base\nfirst\nbase\nmain');
    assert.equal(await run('git fsck --unreachable --no-reflogs 2>&1 | grep -c unreachable'), '0');
  });

  test('the task itself is checked: its solution is right, and nothing is wrong', async () => {
    const gold = await bed.trial('gold');
    assert.deepEqual([gold?.isRight, Object.values(gold?.tests ?? {})], [true, [true, true, true]]);
    const empty = await bed.trial('empty');
    assert.deepEqual([empty?.isRight, Object.values(empty?.tests ?? {}).filter(Boolean).length], [false, 2]);
  });

  test('a bug that a patch puts in leaves no history', async () => {
    const bug = `diff --git a/calc/__init__.py b/calc/__init__.py
--- a/calc/__init__.py
+++ b/calc/__init__.py
@@ -1,5 +1,5 @@
 def add(a, b):
-    return a + b
+    return a + b + 1
 
 
 def double(a):
`;
    const fields = { setup_patch: bug, FAIL_TO_PASS: ['test_add (tests.test_add.AddTests.test_add)'], PASS_TO_PASS: [], patch: '' };
    await using sandbox = await bed.openAgent(makeTask(fields));
    const { stdout } = await sandbox.exec(['/bin/bash', '-c', 'git log --format=%s; git status --short'], {
      cwd: '/workspace/repo',
      timeoutMs: 60_000,
      env: { HOME: '/workspace' },
    });
    assert.equal(stdout.toString(), 'start of the task\n');
    assert.equal((await bed.judge("sed -i 's/ + 1//' calc/__init__.py", fields)).reward, 1);
  });

  test('a task that does not fit its image is blamed on the task, and tests that never run on the verifier', async () => {
    await assert.rejects(bed.judge(repair, { base_commit: 'nowhere' }), { code: 'init-failed', message: /has no commit/ });
    await assert.rejects(bed.judge(repair, { workdir: '/nowhere', setup: '' }), { code: 'init-failed', message: /no folder/ });
    await assert.rejects(bed.judge(repair, { test_command: 'echo nothing to see' }), { code: 'evaluate-failed', message: /no test ran/ });
    await assert.rejects(bed.judge(repair, { test_patch: 'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n' }), {
      code: 'evaluate-failed',
      message: /test patch/,
    });
  });
});
