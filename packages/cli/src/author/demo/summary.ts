// What the demo prints at its end: a table with a row for each group, and one trajectory turn by turn.

import type { RolloutView, Segment, Trajectory } from '@millrace/protocol';

/** A row for each group: rewards as marks, turns, tokens and how long it took. */
export function renderRollouts(views: readonly RolloutView[]): string[] {
  const groups = Map.groupBy(views, (view) => view.group ?? view.id);
  const rows = [...groups.entries()]
    .sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))
    .map(([group, siblings]) => toRow(group, siblings));
  const head = ['group', 'scenario', 'rewards', 'mean', 'turns', 'tokens', 'seconds'];
  const widths = head.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `  ${cells.map((cell, column) => (column < 3 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join('  ')}`;
  return [line(head), line(widths.map((width) => '─'.repeat(width))), ...rows.map(line)];
}

function toRow(group: string, siblings: readonly RolloutView[]): string[] {
  const ordered = siblings.toSorted((a, b) => a.id.localeCompare(b.id));
  const rewards = ordered.map(({ reward }) => reward);
  const known = rewards.filter((reward) => reward !== null);
  const mean = (values: readonly number[]) => values.reduce((total, value) => total + value, 0) / values.length;
  const seconds = ({ result }: RolloutView) =>
    ((result?.timings.init_ms ?? 0) + (result?.timings.run_ms ?? 0) + (result?.timings.evaluate_ms ?? 0)) / 1000;
  return [
    group,
    siblings[0]?.scenario ?? '',
    rewards.map((reward) => (reward === null ? '–' : reward > 0.99 ? '●' : '○')).join(' '),
    known.length === 0 ? '–' : mean(known).toFixed(2),
    mean(siblings.map(({ result }) => result?.turns ?? 0)).toFixed(1),
    String(Math.round(mean(siblings.map(({ result }) => result?.tokens.sampled ?? 0)))),
    mean(siblings.map(seconds)).toFixed(2),
  ];
}

export function renderTrajectory(trajectory: Trajectory | undefined): string[] {
  if (!trajectory) return [];
  return [`  ${trajectory.rolloutId}, turn by turn:`, ...trajectory.segments.flatMap(renderSegment)];
}

function renderSegment(segment: Segment): string[] {
  const logprobs =
    segment.logprobs.length > 0
      ? `, mean logprob ${(segment.logprobs.reduce((a, b) => a + b, 0) / segment.logprobs.length).toFixed(2)}`
      : '';
  const text = segment.messages.map(({ role, content, tool_calls }) => {
    const calls = (tool_calls ?? []).map(({ name, arguments: args }) => `${name}(${JSON.stringify(args)})`);
    return `${role}: ${[content.trim(), ...calls].filter((part) => part !== '').join(' ')}`;
  });
  const lines = text.flatMap((said) => said.split('\n')).map((line) => `  │ ${line.length > 110 ? `${line.slice(0, 109)}…` : line}`);
  return [`  ├─ ${segment.kind}, ${segment.tokenIds.length} tokens${logprobs}`, ...lines];
}
