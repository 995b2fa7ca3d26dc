// Two rollouts as text, side by side from the token at which they part.

import { findDivergence } from '@millrace/dashboard';
import { type RolloutView, type Trajectory, toTrajectoryView } from '@millrace/protocol';
import { openPaint, type Paint, padEnd, toCount, width } from '../terminal/text.ts';
import { renderSegments, type ShowOptions } from './show-render.ts';

export interface ShownRollout {
  readonly view: RolloutView;
  readonly trajectory: Trajectory | undefined;
}

/** Below this, one stands under the other. */
const leastForBoth = 90;

export function renderCompare(pair: readonly [ShownRollout, ShownRollout], options: ShowOptions): string {
  const paint = openPaint(options.color);
  const trajectories = pair.flatMap(({ trajectory }) => trajectory ?? []);
  const [one, other] = pair;
  if (trajectories.length < 2) {
    const missing = pair.find(({ trajectory }) => trajectory === undefined) ?? one;
    return `rollout ${missing.view.id} has no trajectory, so there is nothing to compare.\n`;
  }
  const { tokens, at } = findDivergence(trajectories.map((trajectory) => toTrajectoryView(trajectory).segments));
  const areInColumns = options.columns >= leastForBoth;
  const columns = areInColumns ? Math.floor((options.columns - 3) / 2) : options.columns;
  const sides = trajectories.map((trajectory, index) => {
    const { view } = index === 0 ? one : other;
    const place = at[index];
    const head = renderHead(view, paint);
    if (place === undefined) return [...head, '', paint('dim', 'It has no token of its own.')];
    const shared = place.offset === 0 ? [] : [paint('dim', `its first ${toCount(place.offset)} tokens are the same`)];
    return [...head, ...shared, ...renderSegments(trajectory, { ...options, columns }, { paint, from: place.segment })];
  });
  const isSame = at.every((place) => place === undefined);
  const title = isSame
    ? `They are equal: ${toCount(tokens)} tokens.`
    : `They share their first ${toCount(tokens)} tokens, and part from there.`;
  const [left = [], right = []] = sides;
  const body = areInColumns ? joinColumns(left, right, { columns, paint }) : [...left, '', ...right];
  return `${[paint('bold', title), '', ...(isSame ? sides.flatMap(([first = '']) => [first]) : body)].join('\n')}\n`;
}

function renderHead({ id, state, reward, result }: RolloutView, paint: Paint): string[] {
  const facts = [state, `reward ${reward ?? 'none'}`, ...(result === null ? [] : [`${result.turns} turns`])].join(', ');
  return [paint('bold', id), paint('dim', facts)];
}

function joinColumns(left: readonly string[], right: readonly string[], { columns, paint }: { columns: number; paint: Paint }): string[] {
  const bar = paint('dim', ' │ ');
  return Array.from({ length: Math.max(left.length, right.length) }, (_, index) => {
    const one = left[index] ?? '';
    return `${width(one) < columns ? padEnd(one, columns) : one}${bar}${right[index] ?? ''}`.trimEnd();
  });
}
