// The loop of a scenario's author: `millrace new`, then `millrace try` until it works.

import assert from 'node:assert/strict';
import { appendFile, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { probeBubblewrap } from '@millrace/sandbox';
import { makeTempFolder } from '@millrace/testkit/plain';
import { millrace, openIo } from '../fake-io.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;
const run = (...argv: string[]) => millrace(argv, openIo());

test('a new scenario is four files, and nothing is ever overwritten', async () => {
  await using folder = await makeTempFolder('new');
  const path = join(folder.path, 'mine');
  const made = await run('new', 'scenario', 'word-count', '--folder', path);
  assert.equal(made.code, 0, made.err);
  assert.deepEqual((await readdir(path)).sort(), ['README.md', 'policy.jsonl', 'scenario.ts', 'tasks.jsonl']);
  assert.match(made.out, /Next:\n {2}millrace try \S+\/mine\/scenario\.ts\n/);
  const again = await run('new', 'scenario', 'word-count', '--folder', path);
  assert.equal(again.code, 2);
  assert.match(again.err, /already exists, and nothing is overwritten/);
});

test('a new scenario runs in a folder that npm init made, which is CommonJS', { skip }, async () => {
  await using folder = await makeTempFolder('new');
  await writeFile(join(folder.path, 'package.json'), '{"name": "mine", "type": "commonjs"}');
  const path = join(folder.path, 'word-count');
  assert.equal((await run('new', 'scenario', 'word-count', '--folder', path)).code, 0);
  await writeFile(join(path, 'words.ts'), 'export const count = (text: string): number => text.split(" ").length;\n');
  const scenario = await readFile(join(path, 'scenario.ts'), 'utf8');
  await writeFile(
    join(path, 'scenario.ts'),
    `import { count } from './words.ts';\n${scenario.replace('given === task.words', 'given === count(task.text)')}`,
  );
  const tried = await run('try', join(path, 'scenario.ts'));
  assert.equal(tried.code, 0, tried.err);
  await writeFile(join(path, 'scenario.js'), "import { z } from 'zod';\nexport const scenario = z;\n");
  const script = await run('try', join(path, 'scenario.js'), '--task', '{}');
  assert.equal(script.code, 1);
  assert.match(
    script.err,
    /scenario\.js:1: it is read as CommonJS, because no package\.json above it has "type": "module"; name the file \.mjs/,
  );
});

test('new prompts writes the texts that a user may replace, and nothing is overwritten', async () => {
  await using folder = await makeTempFolder('new');
  const path = join(folder.path, 'texts');
  const made = await run('new', 'prompts', path);
  assert.equal(made.code, 0, made.err);
  assert.deepEqual((await readdir(path)).sort(), ['math-tools.md', 'math.md', 'shell.md', 'swe.md', 'tools']);
  assert.ok((await readdir(join(path, 'tools'))).includes('think.json'));
  assert.match(made.out, /Then set "prompts": "\S+\/texts" in the configuration/);
  assert.equal((await run('new', 'prompts', path)).code, 2);
});

test('what new and try cannot use is a usage error that names it', async () => {
  await using folder = await makeTempFolder('try');
  const file = (name: string) => join(folder.path, name);
  await run('new', 'scenario', 'mine', '--folder', file('mine'));
  await rename(file('mine/scenario.ts'), file('scenario.ts'));
  await writeFile(file('mine/scenario.py'), '');
  await writeFile(file('syntax.ts'), 'export const scenario = {');
  await writeFile(file('empty.jsonl'), '\n');
  await writeFile(file('broken.jsonl'), '{}\n{"text": 1}\n');
  const task = ['--task', '{}'];
  const table: [string[], RegExp][] = [
    [['new'], /new scenario needs <name>/],
    [['new', 'tool', 'x'], /new has no action tool/],
    [['new', 'scenario', 'Word_Count'], /lower-case words joined by hyphens/],
    [['try'], /try needs <scenario>/],
    [['try', file('scenarios.ts')], /there is no file \S+scenarios\.ts; give the path of a scenario/],
    [['try', file('mine')], /mine is a folder; did you mean \S+mine\/scenario\.py\?/],
    [['try', folder.path], /try-\w+ is a folder; did you mean \S+scenario\.ts\?/],
    [['try', file('scenario.ts')], /no --task was given, and there is no \S+tasks\.jsonl: give a file of tasks, or one as --task '\{/],
    [['try', file('scenario.ts'), '--task', file('empty.jsonl')], /empty\.jsonl has no task/],
    [['try', file('scenario.ts'), '--task', '{'], /--task is not JSON/],
    [['try', file('scenario.ts'), ...task, '--policy', '/nope.jsonl'], /\/nope\.jsonl cannot be read/],
    [['try', file('scenario.ts'), ...task, '--policy', file('broken.jsonl')], /broken\.jsonl:2 is not a turn of a policy/],
  ];
  for (const [argv, wanted] of table) {
    const { code, err } = await run(...argv);
    assert.equal(code, 2, argv.join(' '));
    assert.match(err, wanted);
  }
  assert.match((await run('try', file('syntax.ts'))).err, /syntax\.ts:1: syntax error/, 'before a task is asked for');
});

describe('trying a scenario', { skip }, () => {
  test('the scenario that new makes runs as it is, and its task is solved', async () => {
    await using folder = await makeTempFolder('try');
    const path = join(folder.path, 'mine');
    await run('new', 'scenario', 'word-count', '--folder', path);
    const { code, out, err } = await run('try', join(path, 'scenario.ts'));
    assert.equal(code, 0, out + err);
    assert.match(out, /assistant, turn 1\n {2}I count the words\.\n {2}→ bash \{"command":"wc -w < text\.txt"\}\ntool bash\n {2}5\n/);
    assert.match(out, /✔ reward 1 {2}stop reason tool_stopped, 2 turns/);
  });

  test('a scenario in Python runs as it is made; what it prints is shown, and a wrong file is refused with its line', async () => {
    await using folder = await makeTempFolder('try');
    const path = join(folder.path, 'mine');
    const made = await run('new', 'scenario', 'word-count', '--python', '--folder', path);
    assert.match(made.out, /Next:\n {2}millrace try \S+\/mine\/scenario\.py\n/);
    const file = join(path, 'scenario.py');
    await appendFile(file, '\n\nprint("hello from Python")\n');
    const { code, out, err } = await run('try', file);
    assert.equal(code, 0, out + err);
    assert.match(out, /✔ reward 1 {2}stop reason tool_stopped, 2 turns/);
    assert.match(err, /hello from Python/);
    await appendFile(file, 'def\n');
    const broken = await run('try', file);
    assert.equal(broken.code, 1);
    assert.match(broken.err, /scenario\.py:\d+: syntax error/);
  });

  test('the examples in Python, which docs/scenarios.md shows, run as they are', async () => {
    const example = (name: string) => fileURLToPath(new URL(`../../../../examples/${name}/scenario.py`, import.meta.url));
    const guess = await run('try', example('guess'));
    assert.match(
      guess.out,
      /assistant, turn 3\n {2}75\nuser\n {2}Lower\.\n[\s\S]*✔ reward 0\.25 {2}stop reason completed, 4 turns/,
      guess.err,
    );
    const own = await run('try', example('own-scenario'));
    assert.match(own.out, /tool preview\n {2}1,2\n {2}3,4\n[\s\S]*✔ reward 1 /, own.err);
  });

  /** In a folder without packages, so zod is named by its address. */
  const scenario = (evaluate: string) => `import { z } from '${import.meta.resolve('zod')}';
export const scenario = {
  name: 'tiny',
  task: z.strictObject({ n: z.number() }),
  sandbox: () => ({}),
  async init({ task }) {
    if (task.n < 0) throw new Error('a negative task');
    return { messages: [{ role: 'user', content: 'hello' }], tools: ['bash'] };
  },
  async evaluate({ task }) { ${evaluate} },
};`;

  test('a task that fails says which part of the scenario failed and why, and exits with 1', async () => {
    await using folder = await makeTempFolder('try');
    const path = join(folder.path, 'scenario.ts');
    await writeFile(path, scenario('throw new Error("cannot judge");'));
    const judged = await run('try', path, '--task', '{"n": 1}');
    assert.equal(judged.code, 1);
    assert.match(judged.out, /policy +an agent that says nothing/);
    assert.match(judged.out, /assistant, turn 1\n {2}\(nothing\)\n/);
    assert.match(judged.out, /✖ evaluate-failed \(blame: verifier\)\n {2}.*cannot judge/);
    const prepared = await run('try', path, '--task', '{"n": -1}');
    assert.equal(prepared.code, 1);
    assert.match(prepared.out, /✖ init-failed \(blame: task\)\n {2}.*a negative task/);
    const invalid = await run('try', path, '--task', '{"n": "x"}');
    assert.equal(invalid.code, 1);
    assert.match(invalid.err, /task-invalid: task\.n: /);
  });

  test('a reward of 0 is a result, not a failure; turns beyond the script are pointed out', async () => {
    await using folder = await makeTempFolder('try');
    const path = join(folder.path, 'scenario.ts');
    await writeFile(path, scenario('return { reward: task.n - 1 };'));
    await writeFile(join(folder.path, 'policy.jsonl'), '{"tool_calls": [{"name": "bash", "arguments": {"command": "echo hi"}}]}\n');
    const { code, out } = await run('try', path, '--task', '{"scenario": "tiny", "task": {"n": 1}}');
    assert.equal(code, 0, out);
    assert.match(out, /tool bash\n {2}hi\n/);
    assert.match(out, /The policy has 1 turns and the agent was asked for 2; it said nothing in the rest\.\n✔ reward 0/);
  });
});
