// The upper part of the live view: the title with its hints, counts, throughput, rewards, failures and stages; and the events
// at the bottom.

import type { Event, EventKind, RolloutState, ServiceStatus } from '@millrace/protocol';
import { describeEvent } from '../terminal/event-text.ts';
import {
  type Colour,
  cut,
  type Paint,
  padEnd,
  padStart,
  progressBar,
  toBytes,
  toCount,
  toDuration,
  toRate,
  toVisible,
  width,
  wrap,
} from '../terminal/text.ts';
import { type LastEnds, toTokensPerSecond, type WatchModel } from './watch-model.ts';

export interface FrameStyle {
  readonly columns: number;
  readonly paint: Paint;
  readonly dateMs: number;
}

const labelColumns = 12;

/** The address and the policy, then everything that needs attention. */
export function renderTitle({ url, status, trouble }: WatchModel, { columns, paint }: FrameStyle): string[] {
  const title = `millrace  ${cut(url, Math.max(10, columns - 12))}`;
  const facts = fitFacts(status === undefined ? [] : toFacts(status), columns - width(title) - 2);
  const painted = facts.map(([text, colour]) => paint(colour, text)).join(paint('dim', ' · '));
  const first = paint('bold', title) + padStart(painted, columns - width(title));
  const warnings = [...(trouble === undefined ? [] : [trouble]), ...(status?.hints ?? [])];
  const lines = warnings.flatMap((text, index) => {
    const colour = index === 0 && trouble !== undefined ? 'red' : 'yellow';
    return toLines(text, columns - 2).map((line, row) => paint(colour, row === 0 ? `! ${line}` : `  ${line}`));
  });
  return [first, ...lines];
}

/** One or two lines; the rest of a long error is in the table below. */
function toLines(text: string, columns: number): string[] {
  const [first = '', ...rest] = wrap(toVisible(text).replaceAll('\n', ' '), columns);
  return rest.length === 0 ? [first] : [first, cut(rest.join(' '), columns)];
}

/** As many as fit; the first ones matter most. */
function fitFacts(facts: readonly Fact[], columns: number): readonly Fact[] {
  const used = width(facts.map(([text]) => text).join(' · '));
  return used <= columns || facts.length === 0 ? facts : fitFacts(facts.slice(0, -1), columns);
}

type Fact = readonly [text: string, colour: Colour];

/** The most important first. */
function toFacts({ policy, workers, loop_lag_ms, rss_bytes }: ServiceStatus): Fact[] {
  const alive = workers.filter((worker) => worker.alive).length;
  return [
    [`policy ${policy.policy_version} ${policy.state}`, policy.state === 'running' ? 'green' : 'yellow'],
    [`${toCount(alive)} ${alive === 1 ? 'worker' : 'workers'}`, alive === 0 ? 'yellow' : 'dim'],
    [`lag ${toDuration(loop_lag_ms.p99)}`, 'dim'],
    [toBytes(rss_bytes), 'dim'],
  ];
}

export function renderSummary(model: WatchModel, status: ServiceStatus, style: FrameStyle): string[] {
  return [renderRollouts(status, style), renderThroughput(model, status, style), ...renderEnds(model.ends, style)];
}

const working: readonly RolloutState[] = ['init', 'ready', 'run', 'evaluate'];

/** The stages below say where the running ones are. */
function renderRollouts({ rollouts }: ServiceStatus, { paint }: FrameStyle): string {
  const running = working.reduce((total, state) => total + rollouts[state], 0);
  const cells: [string, number, Colour][] = [
    ['queued', rollouts.queued, 'bold'],
    ['running', running, 'cyan'],
    ['done', rollouts.done, 'green'],
    ['failed', rollouts.failed, 'red'],
    ['cancelled', rollouts.cancelled, 'yellow'],
  ];
  const texts = cells.map(([name, count, colour]) => paint(count === 0 ? 'dim' : colour, `${name} ${toCount(count)}`));
  return label('Rollouts', paint) + texts.join('   ');
}

function label(name: string, paint: Paint): string {
  return paint('bold', padEnd(name, labelColumns));
}

function renderThroughput({ turnsPerSecond }: WatchModel, status: ServiceStatus, { columns, paint }: FrameStyle): string {
  const calls = status.backends.reduce((total, backend) => total + backend.calls, 0);
  const tokens = toTokensPerSecond(status);
  const cells = [
    `${toRate((60 * status.recent.ended) / status.recent.seconds)} rollouts/min`,
    `${toRate(turnsPerSecond)} turns/s`,
    `${tokens === undefined ? '-' : toRate(tokens)} tokens/s`,
    paint('dim', `${toCount(calls)} ${calls === 1 ? 'call' : 'calls'} in progress`),
  ];
  const line = label('Throughput', paint) + cells.join('   ');
  return width(line) <= columns ? line : label('Throughput', paint) + cells.join('  ').replace(' in progress', '');
}

const mostCodes = 3;

function renderEnds({ ended, failed, rewarded, meanReward, trend, failures }: LastEnds, { paint }: FrameStyle): string[] {
  if (ended === 0) return [`${label('Rewards', paint)}${paint('dim', 'no rollout has ended yet')}`];
  const mean = meanReward === undefined ? paint('dim', 'none') : paint('green', `mean ${meanReward.toFixed(3)}`);
  const line = trend.length === 0 ? '' : `  ${paint('cyan', toSparkline(trend))}`;
  const rewards = `${label('Rewards', paint)}${mean}${line}  ${paint('dim', `of ${toCount(rewarded)}`)}`;
  const share = `${toRate((100 * failed) / ended)}% of the last ${toCount(ended)}`;
  if (failed === 0) return [rewards, `${label('Failed', paint)}${paint('dim', share)}`];
  const codes = failures
    .slice(0, mostCodes)
    .map(({ code, blame, count }) => `${toCount(count)} ${code}${blame === undefined ? '' : ` (${blame})`}`);
  const rest = failures.length > mostCodes ? [`${failures.length - mostCodes} other codes`] : [];
  return [rewards, label('Failed', paint) + paint('red', [share, [...codes, ...rest].join(', ')].filter((text) => text !== '').join(': '))];
}

const sparks = '▁▂▃▄▅▆▇█';

/** The lowest value is the lowest block, the highest the full one. */
function toSparkline(values: readonly number[]): string {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const toLevel = (value: number) => (most === least ? 3 : Math.round(((value - least) / (most - least)) * (sparks.length - 1)));
  return values.map((value) => sparks[toLevel(value)] ?? '').join('');
}

const stageNames = ['init', 'ready', 'run', 'evaluate'] as const;

/** Slots in use over all live workers, and what waits before each stage. */
export function renderStages(status: ServiceStatus, { columns, paint }: FrameStyle): string[] {
  const reports = status.workers.flatMap((worker) => (worker.alive && worker.report !== null ? [worker.report.stages] : []));
  const rows = stageNames.map((name) => {
    const sum = (field: 'active' | 'waiting' | 'slots') => reports.reduce((total, stages) => total + stages[name][field], 0);
    return { name, active: sum('active'), waiting: sum('waiting'), slots: sum('slots') };
  });
  const counts = rows.map(({ active, slots }) => `${toCount(active)}/${toCount(slots)}`);
  const countColumns = Math.max(5, ...counts.map(width));
  const barColumns = Math.max(4, Math.min(40, columns - labelColumns - countColumns - 30));
  const head = `${padEnd('Stages', labelColumns)}${padEnd('', barColumns)}  ${padStart('slots', countColumns)}   waiting`;
  return [
    paint('bold', head),
    ...rows.map(({ name, active, waiting, slots }, index) => {
      const share = slots === 0 ? 0 : active / slots;
      const drawn = paint(share >= 1 ? 'green' : 'cyan', progressBar(share, barColumns));
      const queued = name === 'init' && status.rollouts.queued > 0 ? `${toCount(waiting)} + ${toCount(status.rollouts.queued)} queued` : '';
      const waits = queued || (waiting === 0 ? '' : toCount(waiting));
      return `  ${padEnd(name, labelColumns - 2)}${drawn}  ${padStart(counts[index] ?? '', countColumns)}   ${waits}`.trimEnd();
    }),
  ];
}

export function renderEvents(events: readonly Event[], { columns, paint, rows }: FrameStyle & { readonly rows: number }): string[] {
  if (rows < 3) return [];
  const lines = events
    .filter(isNotable)
    .slice(2 - rows)
    .map((event) => {
      const text = cut(
        `  ${event.at.slice(11, 19)}  ${padEnd(event.kind, 14)}  ${describeEvent(event, columns < 100 ? 16 : columns)}`,
        columns,
      );
      return event.data.state === 'failed' ? paint('red', text) : text;
    });
  return ['', paint('bold', 'Newest events'), ...(lines.length === 0 ? [paint('dim', '  none yet')] : lines)];
}

/** What every rollout does many times is left out. */
const routine: readonly EventKind[] = ['turn-end', 'rollout-queue', 'rollout-move', 'rollout-place', 'group-begin', 'backend-traffic'];

function isNotable({ kind, data }: Event): boolean {
  return !routine.includes(kind) || data.reason === 'retry' || data.reason === 'loss';
}
