// The diff of the swe scenario holds what the agent changed, and nothing else: whatever lay in the image's repository before it, and whatever
// the agent did to git. Each agent repairs the bug too, so a reward of 1 shows that the whole diff applies where the tests run.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { repair, SweBed, setup } from './bed.ts';

interface Case {
  /** Bash code that is part of the image, in the repository. */
  readonly image?: string;
  readonly agent: string;
  /** Of the diff, besides the repair. */
  readonly files: readonly string[];
  readonly hidden?: readonly string[];
}

const commit = 'git -c user.name=a -c user.email=a@b commit -q';

const cases: Readonly<Record<string, Case>> = {
  'tool folders with a .gitignore of their own, and untracked files, were there before': {
    image: `for one in .venv .pytest_cache .ruff_cache/0.1 tools/.mypy_cache; do mkdir -p $one; echo '*' > $one/.gitignore; echo x > $one/file; done
      mkdir -p notes; printf '*.tmp\\n' > notes/.gitignore; echo a > notes/a; echo b > notes/b.tmp; echo loose > loose.txt; : > empty; ln -s nowhere dangling`,
    agent: 'echo more > .pytest_cache/other; rm -rf .ruff_cache; echo "!*" > .venv/.gitignore',
    files: [],
  },
  'untracked files of the image are changed, deleted, made executable, replaced by a folder and by a link': {
    image:
      'for one in a b c d e; do echo $one > loose-$one; done; mkdir -p conf; echo x > conf/x; echo "*.o" > conf/.gitignore; echo o > conf/y.o',
    agent:
      'echo new > loose-a; rm loose-b; chmod +x loose-c; rm loose-d; mkdir loose-d; echo d > loose-d/d; ln -sfn calc loose-e; rm -r conf; echo f > conf',
    files: ['conf', 'conf/.gitignore', 'conf/x', 'loose-a', 'loose-b', 'loose-c', 'loose-d', 'loose-d/d', 'loose-e', 'loose-e'],
  },
  'rules that the agent adds, changes or deletes hide nothing, and ignored files stay out': {
    agent: `mkdir -p pkg/inner; echo '*' > pkg/.gitignore; echo 1 > pkg/one.py; echo 2 > pkg/inner/two.py; rm .gitignore; echo log > a.log; mkdir -p build; echo z > build/z
      echo '*.py' >> .git/info/exclude; echo '*' > ~/all; git config --global core.excludesFile ~/all`,
    files: ['.gitignore', 'pkg/.gitignore', 'pkg/inner/two.py', 'pkg/one.py'],
  },
  'names with a newline, quotes, spaces, a glob and a leading dash; a name that is not UTF-8 stays': {
    image: `printf x > $'\\xff\\xfe.py'; git add -A; ${commit} -m bytes; git tag -f base; printf y > 'wäre'`,
    agent: `mkdir -p 'od d'; touch -- 'od d/new
line' 'od d/"quo"te' '-dash' ':(top)x' 'star*'; printf y > 'od d/ümlaut'; rm wäre`,
    files: ['-dash', ':(top)x', 'od d/"quo"te', 'od d/new\nline', 'od d/ümlaut', 'star*', 'wäre'],
  },
  'files that are not UTF-8, binary, empty or without a last newline, and with both line ends': {
    image: `printf 'caf\\xe9 = 1\\nb = 2\\n' > latin.py; printf 'a\\r\\nb\\r\\n' > dos.txt; printf '*.eol text eol=crlf\\n' > .gitattributes; printf 'a\\nb\\n' > x.eol
      git add -A; ${commit} -m bytes; git tag -f base; rm x.eol; git checkout x.eol`,
    agent: `printf 'caf\\xe9 = 1\\nb = 3 # \\xe8\\n' > latin.py; printf 'a\\r\\nc\\r\\n' > dos.txt; printf 'a\\r\\nc\\r\\n' > x.eol; printf '\\x00\\x01\\xff' > data.bin; printf 'no end' > no-end`,
    files: ['data.bin', 'dos.txt', 'latin.py', 'no-end', 'x.eol'],
  },
  'a repository that ignores modes, with entries that git takes as unchanged': {
    image: `echo s > script.sh; echo k > skipped; git add -A; ${commit} -m more; git tag -f base; git config core.fileMode false
      git update-index --assume-unchanged script.sh; git update-index --skip-worktree skipped calc/__init__.py`,
    agent: 'chmod +x script.sh; echo l > skipped',
    files: ['script.sh', 'skipped'],
  },
  'the agent commits, amends, switches the branch, merges, and deletes .git': {
    agent: `echo 1 > one; git add one; ${commit} -m one; ${commit} --amend -m uno; git checkout -q -b other; echo 2 > two; git add two; ${commit} -m two; git tag base -f; git gc -q; rm -rf .git`,
    files: ['one', 'two'],
  },
  'the agent starts repositories in folders, and the image has others': {
    image: `git init -q vendored; git init -q full; echo f > full/f; git -C full add f; git -C full -c user.name=a -c user.email=a@b commit -q -m f`,
    agent: `git init -q calc; git init -q fresh; echo n > fresh/n; git -C fresh add n; git -C fresh -c user.name=a -c user.email=a@b commit -q -m n; echo g > full/f; echo v > vendored/v`,
    files: ['fresh/n'],
  },
  'the agent makes files where hidden ones were': {
    image: "echo 'exit 0' > run_tests.sh; mkdir r2e; echo t > r2e/t",
    hidden: ['/workspace/repo/run_tests.sh', '/workspace/repo/r2e', '/elsewhere'],
    agent: 'echo mine > run_tests.sh; mkdir r2e; echo mine > r2e/t; echo mine > r2e-more',
    files: ['r2e-more'],
  },
};

describe('the diff of the swe scenario', { timeout: 300_000, concurrency: 2 }, () => {
  let bed: SweBed;
  before(async () => {
    bed = await SweBed.open();
  });
  after(async () => await bed[Symbol.asyncDispose]());

  for (const [name, { image = 'true', agent, files, hidden = [] }] of Object.entries(cases)) {
    test(`holds what the agent changed: ${name}`, async () => {
      const script = `export HOME=/tmp; ${repair}; ${agent}`;
      const { reward, details } = await bed.judge(script, { setup: `${setup}\n${image}`, hidden: [...hidden] });
      const patch = String(details?.git_patch);
      const found = [...patch.matchAll(/^diff --git (?:a\/(.*) b\/|("a\/.*") "b\/)/gm)].map(
        ([, plain, quoted]) => plain ?? unquote(quoted),
      );
      assert.deepEqual(found.sort(), ['calc/__init__.py', ...files].sort(), JSON.stringify(details?.why));
      assert.equal(reward, 1, JSON.stringify(details));
    });
  }

  test('a changed file with bytes that are not UTF-8 arrives where the tests run as the agent left it', async () => {
    const latin = `printf '# \\xe9\\nvalue = "\\xe9"\\n' > calc/latin.txt; git add -A; ${commit} -m latin; git tag -f base`;
    const check = `python3 -c "import sys; sys.exit(open('calc/latin.txt','rb').read() != b'# \\xe9\\nvalue = \\"\\xe8\\"\\n')" && python3 -m unittest -v tests.test_add tests.test_double`;
    const agent = `${repair}; printf '# \\xe9\\nvalue = "\\xe8"\\n' > calc/latin.txt`;
    const { reward, details } = await bed.judge(agent, { setup: `${setup}\n${latin}`, test_command: check });
    assert.equal(reward, 1, JSON.stringify(details));
  });

  test('an untracked conftest of the image that the agent changes is restored, and a test that the image has already is replaced', async () => {
    const image = 'echo "# ours" > conftest.py; echo "raise SystemExit" > tests/test_double.py';
    const { reward, details } = await bed.judge(`${repair}; echo "# mine" >> conftest.py`, { setup: `${setup}\n${image}` });
    assert.deepEqual([reward, details?.restored], [1, ['conftest.py']], JSON.stringify(details));
  });
});

/** Git quotes a name as C does. */
function unquote(quoted = ''): string {
  const inner = quoted.slice(3, -1).replace(/\\([0-7]{3}|.)/g, (_, code: string) => {
    if (code.length === 3) return String.fromCharCode(Number.parseInt(code, 8));
    return code === 'n' ? '\n' : code;
  });
  return Buffer.from(inner, 'latin1').toString('utf8');
}
