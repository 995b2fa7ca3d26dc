// Small chores in a shell. The answer is what the last \boxed{} holds, and for tasks with `left` the workspace must also hold exactly those
// files when the agent ends.

import { defineScenario, z } from 'millrace/scenario';

const files = z.record(z.string().regex(/^[a-z-]+\.(txt|csv)$/), z.string());

export const scenario = defineScenario({
  name: 'chores',
  task: z.strictObject({
    question: z.string().min(1),
    answer: z.string().min(1),
    kind: z.string().min(1).describe('The kind of chore, for statistics.'),
    files: files.describe('What is in the workspace when the agent starts.'),
    left: files.optional().describe('What must be there in the end. Default: anything.'),
  }),

  sandbox: () => ({}),

  async init({ task, sandbox, signal }) {
    for (const [name, content] of Object.entries(task.files)) await sandbox.writeFile(name, content, { signal });
    return { messages: [{ role: 'user', content: task.question }], tools: ['bash'] };
  },

  async collect({ task, sandbox, signal }) {
    if (!task.left) return Buffer.alloc(0);
    // Each name with the content of the file; other things than files count by their names.
    const script = 'export LC_ALL=C; for name in *; do echo "$name"; if [ -f "$name" ]; then cat "$name"; fi; done';
    const { stdout } = await sandbox.exec(['bash', '-c', script], { cwd: '/workspace', timeoutMs: 10_000, capBytes: 65_536, signal });
    return stdout;
  },

  evaluate({ task, end, artifact }) {
    const given = [...end.answer.matchAll(/\\boxed\{\s*([^{}]{1,100}?)\s*\}/g)].at(-1)?.[1];
    const names = Object.keys(task.left ?? {}).sort();
    const isLeft = artifact.toString('utf8') === names.map((name) => `${name}\n${task.left?.[name]}`).join('');
    return { reward: given === task.answer && isLeft ? 1 : 0, details: { given: given ?? '', kind: task.kind, left: isLeft } };
  },
});
