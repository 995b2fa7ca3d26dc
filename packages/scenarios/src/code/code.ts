// The code scenario: a programming task whose program is run on tests. With tools that need a sandbox, the agent works in one; without, it only answers.

import { definedOf, RolloutError } from '@millrace/protocol';
import { shapeReward } from '../reward/shaping.ts';
import type { Row } from '../row.ts';
import { withoutRoutingFields } from '../row.ts';
import type { Scenario, TaskTrial } from '../scenario.ts';
import { needsSandbox } from '../tools/tool-names.ts';
import { gradeInThread } from '../verifier/graders.ts';
import { type CodeTask, codeTask } from './code-task.ts';
import { findProgram } from './find-program.ts';
import { type GradeOptions, gradeProgram, gradeSecondsOf, type TestGrade } from './grade.ts';
import { gradeAssertions } from './grade-assertions.ts';
import { languages } from './languages.ts';

const maxProgramBytes = 1 << 20;
/** What one sandbox has by default, less what the runner needs. */
const usualMemoryMiB = 1536;

export const codeScenario: Scenario<CodeTask> = {
  name: 'code',
  aliases: ['deepcoder'],
  task: codeTask,
  fromInstance,
  sandbox: (task) => (needsSandbox(task.tools) ? specOf(task) : undefined),
  evaluateSandbox: specOf,

  async init({ task }) {
    return { messages: [{ role: 'user', content: renderQuestion(task) }], tools: task.tools };
  },

  async collect({ task, sandbox, signal }) {
    if (task.submit === 'answer') return Buffer.alloc(0);
    const path = `/workspace/${languages[task.language].file}`;
    return await sandbox.readFile(path, { maxBytes: maxProgramBytes, signal }).catch((error) => {
      if (error instanceof RolloutError && error.code === 'not-found') return Buffer.alloc(0);
      throw error;
    });
  },

  evaluateTimeoutS: gradeSecondsOf,
  lowestReward: ({ shaping: { range } }) => range[0],

  async evaluate({ task, end, artifact, sampledTokens, openSandbox, signal }) {
    const answered = () => gradeInThread(findProgram, [end.answer, task.language], { signal });
    const program = artifact.length > 0 ? artifact.toString('utf8') : await answered();
    if (program === undefined)
      return shapeReward(task.shaping, { correctness: 0, hasFormat: false, sampledTokens }, { verdict: 'no_program' });
    const grades = await grade({ task, program, openSandbox, signal });
    return shapeReward(task.shaping, { correctness: correctnessOf(task, grades), hasFormat: true, sampledTokens }, describe(grades));
  },

  async trial({ task, solution, openSandbox, signal }) {
    if (solution === 'gold' && task.solution === undefined)
      return { isRight: false, tests: {}, why: 'the task has no `solution`, so it cannot be checked' };
    const grades = await grade({
      task,
      program: solution === 'gold' ? (task.solution ?? '') : '',
      openSandbox: () => openSandbox(specOf(task)),
      signal,
    });
    return toTrial(grades);
  },
};

/** ProRL Agent gives its code tasks these tools, and takes the program from the message of finish. */
function fromInstance(instance: Row): unknown {
  const row = withoutRoutingFields(instance);
  if (!('reward_model' in row) || 'tests' in row) return row;
  return { tools: ['bash', 'ipython', 'str_replace_editor', 'think', 'finish'], submit: 'answer', ...row };
}

const grade = ({ task, ...rest }: GradeOptions): Promise<readonly TestGrade[]> =>
  task.test_code === undefined
    ? gradeProgram({ task, ...rest })
    : gradeAssertions({ task: { ...task, test_code: task.test_code }, ...rest });

function toTrial(grades: readonly TestGrade[]): TaskTrial {
  const tests = Object.fromEntries(grades.map(({ score }, at) => [`test ${at + 1}`, score === 1]));
  const at = grades.findIndex(({ score }) => score < 1);
  const failed = grades[at];
  if (failed === undefined) return { isRight: true, tests };
  return { isRight: false, tests, why: `test ${at + 1} of the solution: ${failed.verdict} ${failed.stderr.slice(-200)}`.trim() };
}

function specOf({ image, language, memory_limit_mib }: CodeTask) {
  const memoryMiB = memory_limit_mib + (languages[language].runtimeMiB ?? 0);
  const limits = memoryMiB > usualMemoryMiB ? { memoryMiB: memoryMiB + 512 } : undefined;
  return definedOf({ image, limits });
}

function correctnessOf({ credit }: CodeTask, grades: readonly TestGrade[]): number {
  const share = grades.reduce((sum, { score }) => sum + score, 0) / grades.length;
  return credit === 'partial' || share === 1 ? share : 0;
}

function describe(grades: readonly TestGrade[]): Record<string, unknown> {
  const at = grades.findIndex(({ verdict }) => verdict !== 'passed');
  const first = grades[at];
  const passed = grades.filter(({ verdict }) => verdict === 'passed').length;
  const maxCpuMs = Math.max(...grades.map(({ cpuMs }) => cpuMs));
  const failed = first && { verdict: first.verdict, failed_test: at, stderr: first.stderr.slice(-500) };
  return { verdict: 'passed', passed, total: grades.length, max_cpu_ms: maxCpuMs, ...failed };
}

function renderQuestion(task: CodeTask): string {
  const { file, fences } = languages[task.language];
  const [fence = ''] = fences;
  const starter = task.starter_code === '' ? '' : `\n\nStart from this code:\n\`\`\`${fence}\n${task.starter_code}\n\`\`\``;
  const called = task.test_code?.functions ?? (task.function_name === undefined ? [] : [task.function_name]);
  const how =
    called.length === 0
      ? 'The program reads standard input and writes standard output.'
      : `It is tested by calling ${called.map((name) => `\`${name}\``).join(', ')}.`;
  const block = `one \`\`\`${fence} code block`;
  const answered = needsSandbox(task.tools)
    ? `Put the whole program into ${block} in your final answer.`
    : `Put the whole program into ${block}.`;
  const where = needsSandbox(task.tools) && task.submit === 'file' ? `Write the whole program to /workspace/${file}.` : answered;
  return `${task.question}${starter}\n\n${how} ${where}`;
}
