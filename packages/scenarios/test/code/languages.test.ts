// Every language that the sandbox of this machine has is run for real; of one that it lacks, the task is not graded and the missing program is named.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { codeTask } from '../../src/code/code-task.ts';
import { findProgram } from '../../src/code/find-program.ts';
import { type LanguageName, languageNames, languages, renderRun } from '../../src/code/languages.ts';
import { doubles, GradeBed } from './bed.ts';

/** Prints the double of its input. */
const programs: Readonly<Record<LanguageName, string>> = {
  python: 'print(2 * int(input()))',
  c: '#include <stdio.h>\nint main(void) { int n; scanf("%d", &n); printf("%d\\n", 2 * n); }',
  cpp: '#include <iostream>\nint main() { int n; std::cin >> n; std::cout << 2 * n << "\\n"; }',
  java: 'import java.util.*;\npublic class Main { public static void main(String[] a) { int n = new Scanner(System.in).nextInt(); System.out.println(2 * n); } }',
  go: 'package main\nimport "fmt"\nfunc main() { var n int; fmt.Scan(&n); fmt.Println(2 * n) }',
  rust: 'use std::io;\nfn main() { let mut s = String::new(); io::stdin().read_line(&mut s).unwrap(); let n: i64 = s.trim().parse().unwrap(); println!("{}", 2 * n); }',
  javascript: "const n = Number(require('fs').readFileSync(0, 'utf8')); console.log(2 * n);",
};

const hungry: Partial<Record<LanguageName, string>> = {
  java: 'import java.util.*;\npublic class Main { public static void main(String[] a) { List<byte[]> all = new ArrayList<>(); while (true) all.add(new byte[1 << 20]); } }',
  go: 'package main\nfunc main() { var all [][]byte; for i := 0; i < 700; i++ { b := make([]byte, 1<<20); for j := range b { b[j] = 1 }; all = append(all, b) }; _ = all }',
  javascript: 'const all = []; while (true) all.push(new Array(1e5).fill(all.length));',
};

describe('languages', { timeout: 300_000 }, () => {
  let bed: GradeBed;
  before(async () => {
    bed = await GradeBed.open();
  });
  after(async () => await bed[Symbol.asyncDispose]());

  const isThere = async (language: LanguageName) => {
    await using sandbox = await bed.open();
    const [program = ''] = languages[language].compile ?? languages[language].run;
    return (await sandbox.exec(['/bin/sh', '-c', 'command -v "$0"', program], { timeoutMs: 20_000 })).exitCode === 0;
  };

  for (const language of languageNames) {
    test(`a program in ${language} is graded where the sandbox has the language, and has no verdict where it has not`, async () => {
      const tests = doubles(2);
      if (!(await isThere(language))) {
        assert.ok(!['python', 'c', 'cpp'].includes(language), `${language} belongs to every test machine`);
        return assert.rejects(bed.grade(programs[language], { language, tests }), {
          code: 'evaluate-failed',
          message: /there is no \w+ in the sandbox/,
        });
      }
      const limits = { language, tests, memory_limit_mib: 256, time_limit_s: 20 };
      assert.deepEqual(await bed.verdicts(programs[language], limits), ['passed', 'passed']);
      assert.equal((await bed.verdicts(`${programs[language]} ((`, limits))[0], 'compile_error');
      const greedy = hungry[language];
      if (greedy === undefined) return;
      assert.deepEqual(await bed.verdicts(greedy, { ...limits, tests: [{ input: '', output: 'x' }] }), ['memory_limit']);
    });
  }
});

test('every language has a file, a fence that finds its program, and a command with the memory of the test', () => {
  for (const name of languageNames) {
    const { file, fences, compile = [] } = languages[name];
    assert.ok(compile.length === 0 || compile.includes(file));
    for (const fence of fences) assert.equal(findProgram(`Here:\n\`\`\`${fence}\nx\n\`\`\``, name), 'x');
    assert.ok(!renderRun(languages[name], 64).join(' ').includes('{'));
    assert.equal(codeTask.parse({ question: 'q', language: name, tests: doubles(1) }).language, name);
  }
  assert.ok(renderRun(languages.java, 300).includes('-Xmx300m'));
  assert.ok(renderRun(languages.javascript, 300).includes('--max-old-space-size=300'));
  assert.equal(
    codeTask.safeParse({ question: 'q', language: 'java', function_name: 'f', tests: [{ input: '[]', output: '1' }] }).success,
    false,
  );
});
