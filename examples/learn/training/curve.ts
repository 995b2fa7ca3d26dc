// The curve in the terminal: a line for each step, and a plot below them that grows as the policy learns.

import type { Step } from './trainer.ts';

const height = 10;
const widestPlot = 60;

export function renderHead(): string {
  return '  step  reward                          solved  informative  rollouts  seconds';
}

/** One step as a line, with its reward as a bar. */
export function renderStep({ step, reward, solved, informative, groups, rollouts, seconds }: Step): string {
  const filled = Math.round(Math.max(0, reward) * 24);
  const cells = [
    String(step).padStart(4),
    `${reward.toFixed(2)} ${'█'.repeat(filled)}${'░'.repeat(24 - filled)} `,
    solved.toFixed(2).padStart(6),
    `${informative}/${groups}`.padStart(11),
    String(rollouts).padStart(8),
    seconds.toFixed(1).padStart(7),
  ];
  return `  ${cells.join('  ')}`;
}

/** The mean reward of each step over the range of its groups. */
export function renderPlot(steps: readonly Step[]): string[] {
  const columns = steps.slice(-Math.floor(widestPlot / 3));
  const rows = Array.from({ length: height }, (_, index) => {
    const low = (height - 1 - index) / height;
    const label = index === 0 ? '1.0' : index === height / 2 ? '0.5' : '   ';
    return `  ${label} ┤${columns.map((step) => renderCell(step, low)).join('')}`;
  });
  return [...rows, `  0.0 └${'───'.repeat(columns.length)} step`];
}

function renderCell({ reward, lowest, highest }: Step, low: number): string {
  const isIn = (value: number) => Math.min(0.999, Math.max(0, value)) >= low && Math.min(0.999, Math.max(0, value)) < low + 1 / height;
  if (isIn(reward)) return ' ● ';
  return lowest < low + 1 / height && highest >= low ? ' │ ' : '   ';
}

interface Out {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** Writes each step as it comes. */
export class LiveCurve {
  readonly #out: Out;
  readonly #steps: Step[] = [];
  #drawn = 0;

  constructor(out: Out) {
    this.#out = out;
    out.write(`${renderHead()}\n`);
  }

  add(step: Step): void {
    this.#steps.push(step);
    if (!this.#out.isTTY) return void this.#out.write(`${renderStep(step)}\n`);
    const plot = ['', ...renderPlot(this.#steps)];
    if (this.#drawn > 0) this.#out.write(`\u001b[${this.#drawn}A\u001b[J`);
    this.#out.write(`${renderStep(step)}\n${plot.join('\n')}\n`);
    this.#drawn = plot.length;
  }
}
