// What the fake backend says as the model of a harness: two tasks, each in several turns, one of which has two calls in parallel, written
// with odd spaces, escapes and orders of keys.

import type { Policy } from '@millrace/testkit';
import { z } from 'zod';
import { shellNames, toInput, toolSchema } from './scripted-model.ts';

/** mini-swe-agent ends when a command prints it. */
const end = ['echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'];

/** The commands of each turn, by what the prompt says. */
const scripts: readonly { readonly match: string; readonly turns: readonly (readonly string[])[] }[] = [
  { match: 'Sleep for an hour.', turns: [['sleep 3600']] },
  {
    match: 'Write the files.',
    turns: [
      ["printf 'one\\n' > first.txt"],
      ["(cat first.txt; printf 'two\\n') > second.txt", 'printf \'caf\u00e9 "\\\\"\\n\' > third.txt'],
      end,
    ],
  },
  {
    match: 'double(4) is 12',
    turns: [
      ['cd /workspace/repo && cat calc.py'],
      ["cd /workspace/repo && sed -i 's/a \\* 3/a * 2/' calc.py", 'cd /workspace/repo && git log --oneline | head -n 3'],
      end,
    ],
  },
];

const declared = z.object({ function: z.object({ name: z.string(), parameters: toolSchema }) });

/** Calls the shell of whatever harness asks. A request without a shell is a side call, and gets a text. */
export const harnessPolicy: Policy = ({ turn, opening }) => {
  const prompt = opening();
  const lines = prompt.split('\n').filter((line) => line.startsWith('{"type": "function"')); // as the chat template declares tools
  const shell = lines.map((line) => declared.parse(JSON.parse(line)).function).find(({ name }) => shellNames.test(name));
  const commands = shell && scripts.find(({ match }) => prompt.includes(match))?.turns[turn];
  if (!shell || !commands) return { text: 'All done.' };
  const calls = commands.map((command, at) => writeCall(shell.name, toInput({ name: shell.name, schema: shell.parameters }, command), at));
  return { text: `${turn === 0 ? 'I begin.\n' : ''}${calls.join('\n')}` };
};

/** Each call of a turn in another way that is the same JSON. */
function writeCall(name: string, input: Record<string, unknown>, at: number): string {
  const args = JSON.stringify(at === 0 ? input : Object.fromEntries(Object.entries(input).reverse()), null, at);
  const spaced = at === 0 ? args.replaceAll('":', '":  ') : args.replaceAll('\u00e9', '\\u00e9');
  return `<tool_call>\n${at === 0 ? `{"name":  "${name}", "arguments": ${spaced}}` : `{ "arguments":${spaced},\n"name": "${name}"}`}\n</tool_call>`;
}

/** The file has text in it that each way of writing JSON escapes differently. */
export const shellTask = {
  instruction: 'Write the files.',
  check: '[ "$(cat second.txt)" = "$(printf \'one\\ntwo\')" ] && [ "$(cat third.txt)" = \'caf\u00e9 "\\"\' ]',
};

const workdir = '/workspace/repo';

export const sweTask = {
  instance_id: 'calc-1',
  repo: 'example/calc',
  problem_statement: 'double(4) is 12, and should be 8.',
  workdir,
  setup: `set -e
export HOME=/tmp GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main ${workdir}; cd ${workdir}; mkdir tests; touch tests/__init__.py
printf 'def double(a):\\n    return a * 3\\n' > calc.py; git add -A; git commit -q -m base`,
  test_command: 'python3 -m unittest -v tests.test_double',
  test_patch: `diff --git a/tests/test_double.py b/tests/test_double.py
new file mode 100644
--- /dev/null
+++ b/tests/test_double.py
@@ -0,0 +1,7 @@
+import unittest
+from calc import double
+
+
+class DoubleTests(unittest.TestCase):
+    def test_double(self):
+        self.assertEqual(double(4), 8)
`,
  log_parser: 'unittest',
  FAIL_TO_PASS: ['test_double (tests.test_double.DoubleTests.test_double)'],
};
