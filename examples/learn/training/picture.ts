// The curve as a picture: one SVG that reads well on light and on dark pages, with the reward of each step, the range of its groups,
// the share solved, and what guessing would give.

import type { Step } from './trainer.ts';

const size = { width: 760, height: 400, left: 64, right: 24, top: 64, bottom: 56 };
const inner = { width: size.width - size.left - size.right, height: size.height - size.top - size.bottom };

const style = `
  .page { fill: #ffffff; } text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #475569; }
  .title { font-size: 16px; font-weight: 600; fill: #0f172a; } .grid { stroke: #e2e8f0; } .axis { stroke: #94a3b8; }
  .range { fill: #2563eb; opacity: 0.14; } .reward { stroke: #2563eb; } .solved { stroke: #ea580c; } .dot { fill: #2563eb; }
  .chance { stroke: #64748b; } .line { fill: none; stroke-width: 2.5; stroke-linejoin: round; stroke-linecap: round; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; } text { fill: #9ba7b6; } .title { fill: #f0f6fc; } .grid { stroke: #21262d; } .axis { stroke: #484f58; }
    .range { fill: #58a6ff; opacity: 0.2; } .reward { stroke: #58a6ff; } .solved { stroke: #f0883e; } .dot { fill: #58a6ff; }
    .chance { stroke: #8b949e; }
  }`;

export interface PictureOptions {
  /** The share that a guessing policy would solve. */
  readonly chance: number;
  readonly title: string;
}

export function renderPicture(steps: readonly Step[], { chance, title }: PictureOptions): string {
  const last = Math.max(1, (steps.at(-1)?.step ?? 1) - (steps[0]?.step ?? 0));
  const x = (step: number) => size.left + (inner.width * (step - (steps[0]?.step ?? 0))) / last;
  const y = (value: number) => size.top + inner.height * (1 - Math.min(1, Math.max(0, value)));
  const point = (step: number, value: number) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`;
  const range = [
    ...steps.map(({ step, highest }) => point(step, highest)),
    ...steps.toReversed().map(({ step, lowest }) => point(step, lowest)),
  ];
  const parts = [
    `<rect class="page" width="${size.width}" height="${size.height}" rx="8"/>`,
    `<text class="title" x="${size.left}" y="30">${title}</text>`,
    ...[0, 0.25, 0.5, 0.75, 1].map((value) => renderGridLine(value, y(value))),
    ...chooseTicks(steps).map((step) => `<text x="${x(step)}" y="${size.height - 34}" text-anchor="middle">${step}</text>`),
    `<text x="${size.left + inner.width / 2}" y="${size.height - 12}" text-anchor="middle">training step (policy version)</text>`,
    `<text transform="translate(18 ${size.top + inner.height / 2}) rotate(-90)" text-anchor="middle">reward, share solved</text>`,
    `<polygon class="range" points="${range.join(' ')}"/>`,
    `<line class="chance" x1="${size.left}" x2="${size.width - size.right}" y1="${y(chance)}" y2="${y(chance)}" stroke-width="1.5" stroke-dasharray="5 5"/>`,
    `<polyline class="line solved" stroke-dasharray="2 6" points="${steps.map(({ step, solved }) => point(step, solved)).join(' ')}"/>`,
    `<polyline class="line reward" points="${steps.map(({ step, reward }) => point(step, reward)).join(' ')}"/>`,
    ...steps.map(({ step, reward }) => `<circle class="dot" cx="${x(step).toFixed(1)}" cy="${y(reward).toFixed(1)}" r="3.5"/>`),
    renderLegend(),
  ];
  const { width, height } = size;
  const open = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`;
  return `${open}\n<title>${title}</title>\n<style>${style}\n</style>\n${parts.join('\n')}\n</svg>\n`;
}

function renderGridLine(value: number, y: number): string {
  const line = `<line class="${value === 0 ? 'axis' : 'grid'}" x1="${size.left}" x2="${size.width - size.right}" y1="${y}" y2="${y}"/>`;
  return `${line}<text x="${size.left - 10}" y="${y + 4}" text-anchor="end">${value.toFixed(2)}</text>`;
}

function chooseTicks(steps: readonly Step[]): number[] {
  const every = Math.max(1, Math.ceil(steps.length / 12));
  return steps.map(({ step }) => step).filter((_, index) => index % every === 0);
}

function renderLegend(): string {
  const entries = [
    {
      mark: '<line class="line reward" x1="0" x2="22" y1="-4" y2="-4"/><circle class="dot" cx="11" cy="-4" r="3.5"/>',
      text: 'mean reward',
    },
    { mark: '<rect class="range" width="22" height="12" y="-10"/>', text: 'range of groups' },
    { mark: '<line class="line solved" stroke-dasharray="2 6" x1="0" x2="22" y1="-4" y2="-4"/>', text: 'share solved' },
    { mark: '<line class="chance" stroke-width="1.5" stroke-dasharray="5 5" x1="0" x2="22" y1="-4" y2="-4"/>', text: 'guessing' },
  ];
  return entries
    .map(({ mark, text }, index) => `<g transform="translate(${size.left + index * 150} 52)">${mark}<text x="30">${text}</text></g>`)
    .join('\n');
}
