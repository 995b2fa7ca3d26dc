// Tests graded per second: all tests of a task through one start of the runner, against one program started in the sandbox for each test.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '@millrace/base/log';
import { openBubblewrapDriver, type Sandbox, type SandboxDriver } from '@millrace/sandbox';
import { codeFields, gradeProgram } from '@millrace/scenarios';
import type { BenchReport } from '../report/report.ts';

const count = 200;
const rounds = 5;
const timeoutMs = 300_000;

const programs = {
  python: 'n = int(input())\nprint(sum(i * i for i in range(n)))',
  cpp: '#include <iostream>\nint main() { long long n, s = 0; std::cin >> n; for (long long i = 0; i < n; i++) s += i * i; std::cout << s << "\\n"; }',
} as const;

const tests = Array.from({ length: count }, (_, at) => ({ input: `${at}\n`, output: `${sumOfSquares(at)}\n` }));

export async function runCodeGradingBench(): Promise<BenchReport> {
  const runDir = await mkdtemp(join(tmpdir(), 'bench-'));
  const driver = await openBubblewrapDriver({ runDir, log: silentLog });
  const [ours, baseline, partial]: [number[], number[], number[]] = [[], [], []];
  const cpp: { ours: number[]; baseline: number[] } = { ours: [], baseline: [] };
  for (let round = 0; round < rounds; round += 1) {
    baseline.push(await measure(() => gradeOneByOne(driver, ['python3', '-I', 'solution.py'], programs.python)));
    ours.push(await measure(() => gradeTogether(driver, 'python', 'all')));
    partial.push(await measure(() => gradeTogether(driver, 'python', 'partial')));
    cpp.baseline.push(await measure(() => gradeOneByOne(driver, ['./solution'], programs.cpp)));
    cpp.ours.push(await measure(() => gradeTogether(driver, 'cpp', 'partial')));
  }
  await rm(runDir, { recursive: true, force: true });
  return {
    title: `Grading a program on ${count} tests`,
    rows: [
      { what: 'Python: one program in the sandbox per test', unit: 'tests/s', samples: baseline, larger: 'better' },
      { what: 'Python: the code scenario, stopping at the first failure', against: 0, unit: 'tests/s', samples: ours, larger: 'better' },
      { what: 'Python: the code scenario, every test', against: 0, unit: 'tests/s', samples: partial, larger: 'better' },
      { what: 'C++: one program in the sandbox per test', unit: 'tests/s', samples: cpp.baseline, larger: 'better' },
      { what: 'C++: the code scenario, every test', against: 3, unit: 'tests/s', samples: cpp.ours, larger: 'better' },
    ],
    notes: ['Each figure includes opening the sandbox and, for C++, compiling. The program is right, so that all tests run.'],
  };
}

async function measure(work: () => Promise<void>): Promise<number> {
  const startMs = performance.now();
  await work();
  return (count * 1000) / (performance.now() - startMs);
}

async function gradeTogether(driver: SandboxDriver, language: 'python' | 'cpp', credit: 'all' | 'partial'): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const openSandbox = async () => opened.use(await driver.open({}));
  const grades = await gradeProgram({
    task: codeFields.parse({ question: 'q', language, tests, credit }),
    program: programs[language],
    openSandbox,
  });
  if (grades.some(({ verdict }) => verdict !== 'passed')) throw new Error('the benchmark program failed a test');
}

async function gradeOneByOne(driver: SandboxDriver, argv: readonly string[], program: string): Promise<void> {
  await using sandbox = await driver.open({});
  await prepare(sandbox, argv, program);
  for (const { input, output } of tests) {
    const { exitCode, stdout } = await sandbox.exec(argv, { cwd: '/workspace', stdin: input, timeoutMs });
    if (exitCode !== 0 || stdout.toString('utf8') !== output) throw new Error('the benchmark program failed a test');
  }
}

async function prepare(sandbox: Sandbox, argv: readonly string[], program: string): Promise<void> {
  const isCompiled = argv[0] === './solution';
  await sandbox.writeFile(isCompiled ? '/workspace/solution.cpp' : '/workspace/solution.py', program);
  if (!isCompiled) return;
  const { exitCode } = await sandbox.exec(['g++', '-O2', '-o', 'solution', 'solution.cpp'], { cwd: '/workspace', timeoutMs });
  if (exitCode !== 0) throw new Error('g++ failed');
}

function sumOfSquares(n: number): number {
  let sum = 0;
  for (let i = 0; i < n; i += 1) sum += i * i;
  return sum;
}
