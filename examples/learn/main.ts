// `node examples/learn/main.ts`: a small policy learns by DAPO to look before it answers, in real sandboxes and through the real service.
// Prints the curve, checks every token, saves learn.svg, and exits with 1 if it did not learn.

import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { animals } from './model/vocabulary.ts';
import { learn } from './run.ts';
import { LiveCurve } from './training/curve.ts';
import { renderPicture } from './training/picture.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    steps: { type: 'string', default: '20' },
    goal: { type: 'string', default: '0.91' },
    picture: { type: 'string', default: 'learn.svg' },
  },
});
const goal = Number(values.goal);
const say = (line: string) => console.log(line);
let curve: LiveCurve | undefined;

const ending = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ending.abort());

const { steps, onPolicy, left } = await learn({
  seed: Number(values.seed),
  goal,
  mostSteps: Number(values.steps),
  signal: ending.signal,
  onMoment: say,
  onStep(step) {
    curve ??= new LiveCurve(process.stdout);
    curve.add(step);
  },
}).catch((error: unknown) => {
  if (!ending.signal.aborted) throw error;
  say('\nStopped; nothing is left behind.');
  process.exit(130);
});

const [first, last] = [steps[0], steps.at(-1)];
const title = 'A policy learns to look before it answers (DAPO through Millrace)';
await writeFile(values.picture, renderPicture(steps, { chance: 1 / animals.length, title }));
const rollouts = steps.reduce((sum, step) => sum + step.rollouts, 0);
say(
  `\nReward ${first?.reward.toFixed(2)} → ${last?.reward.toFixed(2)}, solved ${first?.solved.toFixed(2)} → ${last?.solved.toFixed(2)}, in`,
);
say(`${rollouts} rollouts, each in its own sandbox, and ${last?.seconds.toFixed(0)} s. A guess is right in one case of ${animals.length}.`);
say(`On-policy check: ${onPolicy.tokens.toLocaleString('en')} sampled tokens computed again by the trainer, largest difference of a`);
say(`log-probability ${onPolicy.largest.toExponential(1)}. Sandboxes left behind: ${left}. The curve is in ${values.picture}.`);
process.exitCode = last !== undefined && last.reward >= goal && onPolicy.tokens > 0 && left === 0 ? 0 : 1;
