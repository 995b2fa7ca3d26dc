// How `millrace try` shows a rollout: every message in order, then the score or the failure. Everything here is pure.

import type { Message, RolloutView, Trajectory } from '@millrace/protocol';
import { type Paint, toDuration, toVisible } from '../../terminal/text.ts';

/** Longer tool outputs and prompts are cut in the middle. */
const mostLines = 40;

export function renderMessages(trajectory: Trajectory, paint: Paint): string[] {
  let turn = 0;
  return trajectory.segments
    .flatMap(({ messages }) => messages)
    .flatMap((message) => {
      if (message.role === 'assistant') turn += 1;
      return renderMessage(message, turn, paint);
    });
}

const colours = { system: 'dim', user: 'blue', assistant: 'green', tool: 'yellow' } as const;

function renderMessage({ role, content, name, tool_calls = [] }: Message, turn: number, paint: Paint): string[] {
  const title = role === 'assistant' ? `assistant, turn ${turn}` : [role, name].filter((part) => part !== undefined).join(' ');
  const calls = tool_calls.map(({ name: tool, arguments: args }) => `→ ${tool} ${JSON.stringify(args)}`);
  const said = content.trim() === '' ? [] : cutLines(toVisible(content.trimEnd()).split('\n'));
  const lines = [...said, ...calls.map(toVisible)];
  return [paint(colours[role], title), ...(lines.length === 0 ? ['(nothing)'] : lines).map((line) => `  ${line}`)];
}

function cutLines(lines: readonly string[]): readonly string[] {
  if (lines.length <= mostLines) return lines;
  const half = mostLines / 2;
  return [...lines.slice(0, half), `… ${lines.length - mostLines} more lines …`, ...lines.slice(-half)];
}

export function renderOutcome(view: RolloutView, paint: Paint): string[] {
  const { failure, result, reward } = view;
  const details = result?.score ?? {};
  const shown = Object.keys(details).length === 0 ? [] : [`  ${toVisible(JSON.stringify(details))}`];
  if (failure !== null) return [paint('red', `✖ ${failure.code} (blame: ${failure.blame})`), `  ${toVisible(failure.message)}`, ...shown];
  const { init_ms = 0, run_ms = 0, evaluate_ms = 0 } = result?.timings ?? {};
  const times = `init ${toDuration(init_ms)}, run ${toDuration(run_ms)}, evaluate ${toDuration(evaluate_ms)}`;
  const head = `${paint('green', `✔ reward ${reward}`)}  stop reason ${result?.stop_reason}, ${result?.turns} turns; ${times}`;
  return [head, ...shown];
}
