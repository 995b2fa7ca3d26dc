// An evaluation as text: one row of a table, one progress line, or a page with its numbers.

import type { Estimate, EvaluationView } from '@millrace/protocol';
import { renderTable } from '../terminal/table.ts';
import { cut, type Paint, progressBar, toCount, toDuration, width } from '../terminal/text.ts';

export function toEvaluationCells(evaluation: EvaluationView): string[] {
  const { id, state, samples, mean, pass_at, scenario } = evaluation;
  const last = pass_at.at(-1);
  return [
    id,
    state,
    `${toCount(samples.ended)}/${toCount(samples.total)}`,
    toNumber(mean.value),
    toError(mean),
    last === undefined ? '-' : `${toNumber(last.value)} @${last.k}`,
    toCount(samples.unscored),
    scenario,
  ];
}

interface EvaluationLineOptions {
  readonly columns: number;
  readonly paint: Paint;
  /** Samples that end per second. */
  readonly perSecond: number;
}

export function renderEvaluationLine(evaluation: EvaluationView, { columns, paint, perSecond }: EvaluationLineOptions): string {
  const { samples, mean, pass_at } = evaluation;
  const last = pass_at.at(-1);
  const left = perSecond > 0 ? toDuration((1000 * (samples.total - samples.ended)) / perSecond) : '-';
  const facts = [
    `${toCount(samples.ended)}/${toCount(samples.total)} samples`,
    `mean ${toNumber(mean.value)}${mean.standard_error === null ? '' : ` ${toError(mean)}`}`,
    ...(last === undefined ? [] : [`pass@${last.k} ${toNumber(last.value)}`]),
    ...(samples.unscored > 0 ? [`${toCount(samples.unscored)} unscored`] : []),
    `ETA ${left}`,
  ].join('  ');
  const room = columns - width(facts) - 4;
  if (room < 10) return cut(facts, columns - 1);
  return `▕${paint('green', progressBar(samples.ended / samples.total, Math.min(40, room)))}▏ ${facts}`;
}

export function renderEvaluation(evaluation: EvaluationView, paint: Paint): string[] {
  const { id, state, scenario, tasks, n, samples, sampling, correct_at } = evaluation;
  const until = evaluation.ended_at === null ? Date.now() : Date.parse(evaluation.ended_at);
  const colour = state === 'done' ? 'green' : state === 'open' ? 'cyan' : 'yellow';
  const ended = state === 'done' ? '' : `, ${toCount(samples.ended)} of ${toCount(samples.total)} samples have ended`;
  const correct = correct_at === null ? 'the highest reward of its task' : `a reward of at least ${correct_at}`;
  return [
    paint('bold', `evaluation ${id}`),
    `  state        ${paint(colour, state)} after ${toDuration(Math.max(0, until - Date.parse(evaluation.created_at)))}${ended}`,
    `  tasks        ${toCount(tasks)} of ${scenario}, ${toCount(n)} ${n === 1 ? 'sample' : 'samples'} each`,
    `  sampling     temperature ${sampling.temperature}, max_tokens ${sampling.max_tokens}${toVersions(evaluation)}`,
    `  samples      ${toCount(samples.scored)} scored, ${toCount(samples.unscored)} unscored, ${toCount(samples.correct)} correct (${correct})`,
    ...(evaluation.waiting === undefined ? [] : [paint('yellow', `  waiting      ${evaluation.waiting}`)]),
    '',
    ...renderNumbers(evaluation, paint),
    '',
    ...renderFailures(evaluation, paint),
    ...renderMeans(evaluation),
  ];
}

function toVersions({ policy_versions: versions }: EvaluationView): string {
  if (versions === null) return '';
  const { first, last } = versions;
  return first === last ? `, policy version ${first}` : `, policy versions ${first} to ${last}: the weights changed while it ran`;
}

function renderNumbers({ mean, pass_at, pass_all, samples }: EvaluationView, paint: Paint): string[] {
  const rows = [{ name: 'mean reward', ...mean }, ...pass_at.map((one) => ({ name: `pass@${one.k}`, ...one })), ...toReliability(pass_all)];
  const cells = rows.map((row) => ({
    cells: [row.name, toNumber(row.value), toError(row), toNumber(row.lower), toCount(row.tasks)],
  }));
  const options = { columns: Number.POSITIVE_INFINITY, paint, right: [1, 2, 3, 4], indent: 2 };
  const table = renderTable(['  metric', 'value', 'stderr', 'lower', 'tasks'], cells, options);
  if (samples.unscored === 0) return table;
  return [...table, paint('yellow', `  lower: the ${toCount(samples.unscored)} samples without a reward counted as 0 and as not correct`)];
}

/** pass^1 is pass@1. */
function toReliability(passes: EvaluationView['pass_all']) {
  return passes.filter(({ k }) => k > 1).map((one) => ({ name: `pass^${one.k}`, ...one }));
}

function renderFailures({ failures }: EvaluationView, paint: Paint): string[] {
  return failures.map(({ blame, code, samples, scored }, index) => {
    const how = scored === 0 ? '' : scored === samples ? ', scored with the lowest reward' : `, ${toCount(scored)} of them scored`;
    return `  ${index === 0 ? 'failures     ' : ' '.repeat(13)}${paint('red', `${toCount(samples)} ${blame}`)} (${code}${how})`;
  });
}

function renderMeans({ stop_reasons, samples, turns, sampled_tokens: tokens }: EvaluationView): string[] {
  const stops = Object.entries(stop_reasons).map(([reason, count]) => `${reason} ${toCount(count)}`);
  if (stops.length === 0) return [];
  const each = (total: number) => (total / samples.ended).toLocaleString('en', { maximumFractionDigits: 1 });
  return [
    `  stopped      ${stops.join(', ')}`,
    `  per sample   ${each(turns)} ${turns === samples.ended ? 'turn' : 'turns'}, ${each(tokens)} sampled tokens`,
  ];
}

function toNumber(value: number | null): string {
  return value === null ? '-' : value.toFixed(4);
}

function toError({ standard_error: error }: Pick<Estimate, 'standard_error'>): string {
  return error === null ? '-' : `±${error.toFixed(4)}`;
}
