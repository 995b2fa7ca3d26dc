// `node examples/learn/main.ts`: a small policy learns by DAPO to look before it answers, in real sandboxes and through the real service.
// Prints the curve, checks every token on the way, saves learn.svg, and exits with 1 when it did not learn.

import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { LiveCurve } from './curve.ts';
import { renderPicture } from './picture.ts';
import { learn } from './run.ts';
import { animals } from './vocabulary.ts';

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

const { steps, onPolicy, left } = await learn({
  seed: Number(values.seed),
  goal,
  mostSteps: Number(values.steps),
  onMoment: say,
  onStep(step) {
    curve ??= new LiveCurve(process.stdout);
    curve.add(step);
  },
});

const [first, last] = [steps[0], steps.at(-1)];
const title = 'A policy learns to look before it answers (DAPO through Millrace)';
await writeFile(values.picture, renderPicture(steps, { chance: 1 / animals.length, title }));
const rollouts = steps.reduce((sum, step) => sum + step.rollouts, 0);
say(
  `\nReward ${first?.reward.toFixed(2)} → ${last?.reward.toFixed(2)}, solved ${first?.solved.toFixed(2)} → ${last?.solved.toFixed(2)}, in`,
);
say(
  `${rollouts} rollouts, each in a sandbox of its own, and ${last?.seconds.toFixed(0)} s. Guessing would solve ${(1 / animals.length).toFixed(3)}.`,
);
say(`On-policy check: ${onPolicy.tokens.toLocaleString('en')} sampled tokens computed again by the trainer, largest difference of a`);
say(`log-probability ${onPolicy.largest.toExponential(1)}. Sandboxes left behind: ${left}. The curve is in ${values.picture}.`);
process.exitCode = last !== undefined && last.reward >= goal && onPolicy.tokens > 0 && left === 0 ? 0 : 1;
