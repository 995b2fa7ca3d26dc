// The verdicts benchmark: right and wrong solutions of every scenario, judged by a whole service on a quiet machine and on one at load 40,
// where programs of verifiers are killed at random. A reward that differs from the truth is a wrong reward; a failure is none.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RolloutView } from '@millrace/protocol';
import { makeTempFolder, makeTinyImage, openFakeBackend, type Policy, qwen3Folder, TestService } from '@millrace/testkit';
import type { BenchReport } from '../report/report.ts';
import { harborBase } from './harbor-tasks.ts';
import { MachineLoad } from './machine-load.ts';
import { gymModule, makeVerdictCases, pythonScenario, type VerdictCase } from './verdict-cases.ts';

/** `VERDICTS_PART=0.1` tries a tenth of the cases, and `VERDICTS_LOOPS` is for a machine that is busy already. */
const part = Number(process.env.VERDICTS_PART ?? 1);
const loops = Number(process.env.VERDICTS_LOOPS ?? 38);
const limits = { max_retries: 5, run_timeout_s: 7200, init_timeout_s: 3600, tool_timeout_s: 600, evaluate_timeout_s: 20 };

interface JudgedRun {
  /** In seconds, from the first claim to the last end. */
  readonly seconds: number;
  readonly right: number;
  readonly wrong: number;
  /** `case: expected, seen` of each wrong reward. */
  readonly wrongRewards: readonly string[];
  /** Rollouts without a reward, by the code and the blame of their failure. */
  readonly failures: readonly string[];
  readonly evaluateMs: readonly number[];
  readonly attempts: number;
}

export async function runVerdictsBench(): Promise<BenchReport> {
  const quiet = await judgeAll('quiet');
  const { load, kills, busy } = await underLoad();
  const sum = ({ right, wrong }: JudgedRun) => right + wrong;
  const failuresOf = ({ failures }: JudgedRun) => (failures.length === 0 ? 'none failed' : `failed: ${failures.join(', ')}`);
  const isBlamedOnService = busy.failures.every((failure) => failure.startsWith('service '));
  return {
    title: `Verdicts on a busy machine: ${sum(busy)} solutions, load ${load.toFixed(0)}`,
    rows: [
      { what: 'quiet machine: evaluate', unit: 'ms', samples: quiet.evaluateMs },
      { what: 'busy machine: evaluate', unit: 'ms of its own time', samples: busy.evaluateMs },
      { what: 'quiet machine: all of them', unit: 's', samples: [quiet.seconds] },
      { what: 'busy machine: all of them', unit: 's', samples: [busy.seconds] },
      { what: 'wrong rewards on the quiet machine', unit: '', samples: [quiet.wrongRewards.length] },
      { what: 'wrong rewards on the busy machine', unit: '', samples: [busy.wrongRewards.length] },
    ],
    targets: [
      { claim: `quiet: 0 wrong rewards of ${sum(quiet)}${describe(quiet.wrongRewards)}`, kept: quiet.wrongRewards.length === 0 },
      { claim: `busy: 0 wrong rewards of ${sum(busy)}${describe(busy.wrongRewards)}`, kept: busy.wrongRewards.length === 0 },
      { claim: `busy: failures only with blame service (${failuresOf(busy)})`, kept: isBlamedOnService },
    ],
    notes: [
      `${busy.right} right and ${busy.wrong} wrong solutions over all scenarios; among the wrong ones are programs that spin, sleep and crash. ` +
        `${loops} loops, two writers to the disk and a group that thrashes in its memory limit ran meanwhile; ${kills} programs of verifiers were killed by SIGKILL. ` +
        `${busy.attempts} attempts, ${failuresOf(busy)}.`,
    ],
  };
}

const describe = (wrong: readonly string[]): string => (wrong.length === 0 ? '' : ` (${wrong.slice(0, 10).join('; ')})`);

async function underLoad(): Promise<{ load: number; kills: number; busy: JudgedRun }> {
  using machine = new MachineLoad(loops);
  let load = 0;
  const watch = setInterval(async () => {
    load = Math.max(load, Number((await readFile('/proc/loadavg', 'utf8')).split(' ')[0]));
  }, 5000);
  try {
    const busy = await judgeAll('busy');
    return { load, kills: machine.kills, busy };
  } finally {
    clearInterval(watch);
  }
}

async function judgeAll(name: string): Promise<JudgedRun> {
  await using temporary = await makeTempFolder('bench'); // the services, which write into it, close first
  const folder = temporary.path;
  const cases = makeVerdictCases(join(folder, 'tasks'), part);
  await writeFile(join(folder, 'verdict_envs.py'), gymModule);
  const scenario = join(folder, 'verdict_scenario.py');
  await writeFile(scenario, pythonScenario);
  const image = join(folder, 'image');
  await makeTinyImage(image);
  await using backend = await openFakeBackend({ policy: toPolicy(cases) });
  const common = {
    tokenizer: qwen3Folder(),
    inference: { stallMs: 600_000 },
    pipeline: { leaseMs: 120_000, evaluateSlots: 4, rejudgeShare: 0 },
  };
  await using plain = await TestService.open({ ...common, workers: 2, scenarios: [scenario], gym: { packages: folder } });
  const images = { driver: 'apptainer', images: join(folder, 'images'), imageNames: { [harborBase]: image } };
  await using withImages = await TestService.open({ ...common, workers: 1, sandbox: images });
  const views: RolloutView[] = [];
  const startMs = performance.now();
  const judge = async (service: TestService, isOurs: (one: VerdictCase) => boolean) => {
    await service.client.backends.join({ id: 'fake', url: backend.url, dialect: 'vllm' });
    const submissions = cases.map(({ scenario: of, task }, at) => ({ id: `case-${at}`, scenario: of, task, limits }));
    for await (const view of await service.client.run(submissions.filter((_, at) => isOurs(cases[at] as VerdictCase)))) {
      views.push(view);
      if (views.length % 50 === 0)
        console.error(`${name}: ${views.length} of ${cases.length} after ${Math.round((performance.now() - startMs) / 1000)} s`);
    }
  };
  const needsImage = ({ scenario: of }: VerdictCase) => of === 'harbor';
  await Promise.all([judge(plain, (one) => !needsImage(one)), judge(withImages, needsImage)]);
  console.error(`${name}: all ${cases.length} after ${Math.round((performance.now() - startMs) / 1000)} s`);
  return toRun(cases, views, (performance.now() - startMs) / 1000);
}

const toPolicy = (cases: readonly VerdictCase[]): Policy => {
  return ({ opening, turn }) => {
    const { turns = [] } = cases[Number(/Case (\d+)\./.exec(opening())?.[1])] ?? {};
    return { text: turns[Math.min(turn, turns.length - 1)] ?? '' };
  };
};

function toRun(cases: readonly VerdictCase[], views: readonly RolloutView[], seconds: number): JudgedRun {
  const ended = views.map((view) => ({ view, of: cases[Number(view.id.replace('case-', ''))], reward: view.result?.reward ?? null }));
  const judged = ended.filter(({ reward }) => reward !== null);
  const wrong = judged.filter(({ of, reward }) => reward !== (of?.isRight ? 1 : 0));
  const lost = ended.filter(({ reward }) => reward === null);
  return {
    seconds,
    right: cases.filter(({ isRight }) => isRight).length,
    wrong: cases.filter(({ isRight }) => !isRight).length,
    wrongRewards: wrong.map(
      ({ view, of, reward }) =>
        `${of?.scenario} ${view.id}: ${reward} for a ${of?.isRight ? 'right' : 'wrong'} one ${JSON.stringify(view.failure ?? view.result?.score).slice(0, 200)}`,
    ),
    failures: lost.map(({ view }) => `${view.failure?.blame} ${view.failure?.code}: ${view.failure?.message.slice(0, 100)}`),
    evaluateMs: judged.flatMap(({ view }) => view.result?.timings.evaluate_ms ?? []),
    attempts: views.reduce((sum, { attempt }) => sum + attempt, 0),
  };
}
