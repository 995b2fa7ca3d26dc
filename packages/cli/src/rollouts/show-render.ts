// One trajectory for people: a header, then every segment with who spoke, what was said and sampled, and its tokens on
// request. Token boundaries are shown by ids, or by the text of each token where the model's tokenizer is at hand.

import type { Message, RolloutView, Segment, ToolCall, Trajectory } from '@millrace/protocol';
import { openPaint, type Paint, padEnd, toCount, toDuration, toVisible, width, wrap } from '../terminal/text.ts';

export interface ShowOptions {
  readonly columns: number;
  readonly color: boolean;
  readonly tokens: boolean;
  readonly logprobs: boolean;
  /** The text of one token; ids are shown where it is absent. */
  readonly tokenText?: (id: number) => string;
}

export function renderShow(view: RolloutView, trajectory: Trajectory | undefined, options: ShowOptions): string {
  const paint = openPaint(options.color);
  const body = trajectory === undefined ? ['', paint('dim', 'It has no trajectory.')] : renderSegments(trajectory, options, paint);
  return `${[...renderHeader(view, trajectory, { paint, columns: options.columns }), ...body].join('\n')}\n`;
}

interface Style {
  readonly paint: Paint;
  readonly columns: number;
}

function renderHeader(view: RolloutView, trajectory: Trajectory | undefined, { paint, columns }: Style): string[] {
  const { result, failure } = view;
  const colour = view.state === 'done' ? 'green' : view.state === 'failed' ? 'red' : 'yellow';
  const rows: (readonly [string, string])[] = [
    ['state', `${paint(colour, view.state)}${result?.stop_reason ? `, stopped by ${result.stop_reason}` : ''}`],
    ['reward', view.reward === null ? paint('dim', 'none: no verifier gave one') : paint('bold', String(view.reward))],
    ['scenario', view.scenario + (view.group === null ? '' : paint('dim', `   group ${view.group}`))],
    ['attempt', `${view.attempt}${toTroubles(view)}`],
  ];
  if (failure !== null)
    rows.push(['failure', paint('red', failure.code)], ['blame', `${failure.blame}${failure.stage ? ` in ${failure.stage}` : ''}`]);
  if (result !== null) {
    const { prompt, sampled, observation } = result.tokens;
    const malformed = result.malformed_calls > 0 ? paint('yellow', `   ${result.malformed_calls} malformed tool calls`) : '';
    rows.push(['turns', `${result.turns}${malformed}`]);
    rows.push(['tokens', `${toCount(prompt)} prompt, ${toCount(sampled)} sampled, ${toCount(observation)} observed`]);
    rows.push(['time', renderTimings(result.timings)]);
    if (Object.keys(result.score).length > 0) rows.push(['score', toVisible(JSON.stringify(result.score))]);
  }
  if (trajectory !== undefined) rows.push(['model', toVisible(trajectory.model)]);
  const title = paint('bold', `rollout ${view.id}`);
  const lines = rows.flatMap(([name, text]) =>
    indent(width(text) > columns - 12 ? wrap(text, columns - 12) : [text], padEnd(`  ${name}`, 12), paint),
  );
  const message = failure === null ? [] : wrap(toVisible(failure.message), columns - 12).map((line) => `${' '.repeat(12)}${line}`);
  return [title, ...lines, ...message];
}

function indent(lines: readonly string[], label: string, paint: Paint): string[] {
  return lines.map((line, index) => (index === 0 ? paint('dim', label) : ' '.repeat(label.length)) + line);
}

function toTroubles({ retries, losses }: RolloutView): string {
  const parts = [...(retries > 0 ? [`${retries} retried`] : []), ...(losses > 0 ? [`${losses} lost with a worker`] : [])];
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}

function renderTimings(timings: NonNullable<RolloutView['result']>['timings']): string {
  const { queued_ms, init_ms, ready_ms, run_ms, model_ms, tool_ms, evaluate_wait_ms, evaluate_ms } = timings;
  const run = `run ${toDuration(run_ms)} (model ${toDuration(model_ms)}, tools ${toDuration(tool_ms)})`;
  const waits = queued_ms + ready_ms + evaluate_wait_ms;
  return `waited ${toDuration(waits)}, init ${toDuration(init_ms)}, ${run}, evaluate ${toDuration(evaluate_ms)}`;
}

function renderSegments(trajectory: Trajectory, options: ShowOptions, paint: Paint): string[] {
  const style = { paint, columns: options.columns };
  let at = 0;
  return trajectory.segments.flatMap((segment) => {
    if (segment.kind === 'prompt') at = 0;
    const lines = ['', renderRule(segment, at, style), ...renderBody(segment, style)];
    if (options.tokens) lines.push(...renderTokens(segment, options, style));
    at += segment.tokenIds.length;
    return lines;
  });
}

const kindColours = { prompt: 'cyan', sampled: 'green', observation: 'yellow', inserted: 'magenta' } as const;

function renderRule(segment: Segment, at: number, { paint, columns }: Style): string {
  const { policy_versions: policy, finish_reason: finish, backend, retries } = segment;
  const branch = segment.branch === undefined ? '' : `branch ${segment.branch} · `;
  const title = `${branch}${segment.turn === 0 ? segment.kind : `turn ${segment.turn} · ${segment.kind}`}`;
  const facts = [
    `${toCount(segment.tokenIds.length)} tokens from ${toCount(at)}`,
    ...(finish === undefined ? [] : [`finish ${finish}`]),
    ...(policy === undefined ? [] : [`policy ${policy.first === policy.last ? policy.first : `${policy.first}–${policy.last}`}`]),
    ...(backend === undefined ? [] : [`on ${backend}`]),
    ...(retries ? [`${retries} retries`] : []),
  ].join(' · ');
  const line = '─'.repeat(Math.max(2, columns - width(title) - width(facts) - 6));
  return `${paint('dim', '──')} ${paint(kindColours[segment.kind], title)} ${paint('dim', `${line} ${facts}`)}`;
}

/** The messages where they are known; the text as the model saw it where they are not. */
function renderBody(segment: Segment, style: Style): string[] {
  const { messages } = segment;
  if (messages.length === 0) return segment.text === '' ? [] : renderText(segment.text, style);
  return messages.flatMap((message) => renderMessage(message, style));
}

function renderMessage(message: Message, style: Style): string[] {
  const { paint } = style;
  const label = message.name === undefined ? message.role : `${message.role} ${message.name}`;
  const content = message.content.trim() === '' ? [] : renderText(message.content.replace(/^\n+|\n+$/g, ''), style);
  const calls = (message.tool_calls ?? []).flatMap((call) => renderCall(call, style));
  const empty = content.length + calls.length === 0 ? [paint('dim', '  (empty)')] : [];
  return [paint('bold', label), ...content, ...calls, ...empty];
}

function renderText(text: string, { columns }: Style): string[] {
  return wrap(toVisible(text), columns - 2).map((line) => (line === '' ? '' : `  ${line}`));
}

/** An argument of several lines, as commands often are, keeps its lines. */
function renderCall(call: ToolCall, { paint, columns }: Style): string[] {
  const rows = Object.entries(call.arguments).flatMap(([name, value]) => {
    const text = toVisible(typeof value === 'string' ? value : JSON.stringify(value));
    return wrap(text, columns - 8 - name.length).map(
      (line, index) => `    ${padEnd(index === 0 ? `${name}:` : '', name.length + 2)}${line}`,
    );
  });
  return [`  ${paint('magenta', `→ ${toVisible(call.name)}`)}`, ...rows];
}

function renderTokens(segment: Segment, options: ShowOptions, style: Style): string[] {
  const cells = Array.from(segment.tokenIds, (id, index) => {
    const logprob = segment.logprobs[index];
    const token = options.tokenText ? toVisibleToken(options.tokenText(id)) : String(id);
    return options.logprobs && logprob !== undefined ? `${token}:${logprob.toFixed(2)}` : token;
  });
  if (cells.length === 0) return [];
  return [
    style.paint('dim', options.tokenText ? '  tokens' : '  token ids'),
    ...(options.color ? packPainted(cells, style) : packMarked(cells, style)),
  ];
}

/** White space is part of a token, so it is shown. */
function toVisibleToken(text: string): string {
  return toVisible(text.replaceAll('\n', '⏎').replaceAll('\t', '⇥').replaceAll(' ', '·'));
}

/** Neighbours are told apart by every other one being inverse. */
function packPainted(cells: readonly string[], { paint, columns }: Style): string[] {
  return packCells(cells, columns - 2, 2).map(
    (line) => `  ${line.map(({ text, odd }) => paint(odd ? 'inverse' : 'dim', ` ${text} `)).join('')}`,
  );
}

function packMarked(cells: readonly string[], { columns }: Style): string[] {
  return packCells(cells, columns - 3, 1).map((line) => `  |${line.map(({ text }) => `${text}|`).join('')}`);
}

interface Cell {
  readonly text: string;
  readonly odd: boolean;
}

function packCells(cells: readonly string[], columns: number, around: number): Cell[][] {
  const lines: Cell[][] = [];
  let used = Number.POSITIVE_INFINITY;
  for (const [index, text] of cells.entries()) {
    if (used + width(text) + around > columns) {
      lines.push([]);
      used = 0;
    }
    lines.at(-1)?.push({ text, odd: index % 2 === 1 });
    used += width(text) + around;
  }
  return lines;
}
