// One rollout as text: a header, then every segment of the trajectory with its role, its text and, on request, its tokens.
// Tokens are shown by their ids, or by their text where a tokenizer is given.

import { type Message, type RolloutView, type Segment, type ToolCall, type Trajectory, trainableShare } from '@millrace/protocol';
import { openPaint, type Paint, padEnd, toCount, toDuration, toVisible, width, wrap } from '../terminal/text.ts';
import { toFailureHint } from './failure-hints.ts';

export interface ShowOptions {
  readonly columns: number;
  readonly color: boolean;
  readonly tokens: boolean;
  readonly logprobs: boolean;
  /** The text of one token; without it, ids are shown. */
  readonly tokenText?: (id: number) => string;
}

export function renderShow(view: RolloutView, trajectory: Trajectory | undefined, options: ShowOptions): string {
  const paint = openPaint(options.color);
  const body = trajectory === undefined ? ['', paint('dim', 'It has no trajectory.')] : renderSegments(trajectory, options, { paint });
  return `${[...renderHeader(view, trajectory, { paint, columns: options.columns }), ...body].join('\n')}\n`;
}

interface ShowStyle {
  readonly paint: Paint;
  readonly columns: number;
}

function renderHeader(view: RolloutView, trajectory: Trajectory | undefined, style: ShowStyle): string[] {
  const { paint } = style;
  const { result } = view;
  const colour = view.state === 'done' ? 'green' : view.state === 'failed' ? 'red' : 'yellow';
  const rows: HeaderRow[] = [
    ['state', `${paint(colour, view.state)}${result?.stop_reason ? `, stopped by ${result.stop_reason}` : ''}`],
    ['reward', view.reward === null ? paint('dim', 'none: no verifier measured one') : paint('bold', String(view.reward))],
    ['scenario', view.scenario + (view.group === null ? '' : paint('dim', `   group ${view.group}`))],
    ['attempt', `${view.attempt}${toTroubles(view)}`],
    ...(view.waiting === undefined ? [] : [['waits', toVisible(view.waiting)] as const]),
    ...toFailureRows(view, paint),
    ...toResultRows(view, paint),
  ];
  if (trajectory !== undefined)
    rows.push(['trainable', toTrainable(trajectory)], ['model', toVisible(trajectory.model)], ...toProvenanceRows(trajectory, paint));
  return [paint('bold', `rollout ${view.id}`), ...rows.flatMap((row) => renderRow(row, style))];
}

/** The engines that sampled it; then the parameters and files, which are the same for all of them. */
function toProvenanceRows({ provenances = [] }: Trajectory, paint: Paint): HeaderRow[] {
  const [first] = provenances;
  if (first === undefined) return [];
  const engines = provenances.map(({ engine, engine_version, engine_model = null, dialect, logprobs_mode }): HeaderRow => {
    const name = [engine ?? dialect, engine_version, engine_model].filter((part) => part !== null).join(' ');
    return ['engine', toVisible(`${name}, ${logprobs_mode} logprobs`)];
  });
  const sampling = Object.entries(first.sampling).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  const files = `tokenizer ${first.tokenizer_sha256?.slice(0, 12) ?? 'of a backend'}, template ${first.template_sha256.slice(0, 12)}`;
  return [...engines, ['sampling', toVisible(sampling.join(', '))], ['files', paint('dim', files)]];
}

type HeaderRow = readonly [name: string, text: string];

function renderRow([name, text]: HeaderRow, { paint, columns }: ShowStyle): string[] {
  return indent(width(text) > columns - 12 ? wrap(text, columns - 12) : text.split('\n'), padEnd(`  ${name}`, 12), paint);
}

/** The failure that ended it, with what to do; then those of earlier attempts. */
function toFailureRows({ failure, failures }: RolloutView, paint: Paint): HeaderRow[] {
  if (failure === null && failures.length === 0) return [];
  const earlier = failures.map(
    ({ code, attempt, message }): HeaderRow => ['earlier', `attempt ${attempt}: ${code}: ${toVisible(message)}`],
  );
  if (failure === null) return earlier;
  const { code, blame, stage, message } = failure;
  const hint = toFailureHint(code);
  return [
    ['failure', paint('red', code)],
    ['blame', `${blame}${stage === null ? '' : ` in ${stage}`}`],
    ['message', toVisible(message)],
    ...(hint === undefined ? [] : [['hint', paint('yellow', hint)] as const]),
    ...earlier,
  ];
}

function toResultRows({ result }: RolloutView, paint: Paint): HeaderRow[] {
  if (result === null) return [];
  const { prompt, sampled, observation } = result.tokens;
  const malformed = result.malformed_calls > 0 ? paint('yellow', `   ${result.malformed_calls} malformed tool calls`) : '';
  return [
    ['turns', `${result.turns}${malformed}`],
    ['tokens', `${toCount(prompt)} prompt, ${toCount(sampled)} sampled, ${toCount(observation)} observed`],
    ['time', renderTimings(result.timings)],
    ...(Object.keys(result.score).length > 0 ? [['score', toVisible(JSON.stringify(result.score))] as const] : []),
  ];
}

function indent(lines: readonly string[], label: string, paint: Paint): string[] {
  return lines.map((line, index) => (index === 0 ? paint('dim', label) : ' '.repeat(label.length)) + line);
}

function toTrainable(trajectory: Trajectory): string {
  const branches = 1 + Math.max(0, ...trajectory.segments.map(({ branch = 0 }) => branch));
  const share = `${(100 * trainableShare(trajectory)).toFixed(1)} % of its tokens`;
  return branches === 1 ? share : `${share}, in ${branches} branches`;
}

function toTroubles({ retries, losses }: RolloutView): string {
  const parts = [...(retries > 0 ? [`${retries} retried`] : []), ...(losses > 0 ? [`${losses} lost with a worker`] : [])];
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}

function renderTimings(timings: NonNullable<RolloutView['result']>['timings']): string {
  const { queued_ms, init_ms, ready_ms, run_ms, model_ms, tool_ms, cache_wait_ms, evaluate_wait_ms, evaluate_ms } = timings;
  const run = `run ${toDuration(run_ms)} (model ${toDuration(model_ms)}, tools ${toDuration(tool_ms)})`;
  const waits = queued_ms + ready_ms + cache_wait_ms + evaluate_wait_ms;
  const forCache = cache_wait_ms === 0 ? '' : ` (for the KV cache ${toDuration(cache_wait_ms)})`;
  return `waited ${toDuration(waits)}${forCache}, init ${toDuration(init_ms)}, ${run}, evaluate ${toDuration(evaluate_ms)}`;
}

/** From the segment with index `from`. */
export function renderSegments(
  trajectory: Trajectory,
  options: ShowOptions,
  { paint, from = 0 }: { paint: Paint; from?: number },
): string[] {
  const style = { paint, columns: options.columns };
  let at = 0;
  return trajectory.segments.flatMap((segment, index) => {
    if (segment.kind === 'prompt') at = 0;
    if (index < from) {
      at += segment.tokenIds.length;
      return [];
    }
    const lines = ['', renderRule(segment, at, style), ...renderBody(segment, style)];
    if (options.tokens) lines.push(...renderTokens(segment, options, style));
    at += segment.tokenIds.length;
    return lines;
  });
}

const kindColours = { prompt: 'cyan', sampled: 'green', observation: 'yellow', inserted: 'magenta' } as const;

function renderRule(segment: Segment, at: number, { paint, columns }: ShowStyle): string {
  const { policy_versions: policy, finish_reason: finish, adapter, backend, retries } = segment;
  const branch = segment.branch === undefined ? '' : `branch ${segment.branch} · `;
  const title = `${branch}${segment.turn === 0 ? segment.kind : `turn ${segment.turn} · ${segment.kind}`}`;
  const facts = [
    `${toCount(segment.tokenIds.length)} tokens from ${toCount(at)}`,
    ...(finish === undefined ? [] : [`finish ${finish}`]),
    ...(policy === undefined ? [] : [`policy ${policy.first === policy.last ? policy.first : `${policy.first}–${policy.last}`}`]),
    ...(adapter === undefined ? [] : [`adapter ${adapter}`]),
    ...(backend === undefined ? [] : [`on ${backend}`]),
    ...(retries ? [`${retries} retries`] : []),
  ].join(' · ');
  const line = '─'.repeat(Math.max(2, columns - width(title) - width(facts) - 6));
  return `${paint('dim', '──')} ${paint(kindColours[segment.kind], title)} ${paint('dim', `${line} ${facts}`)}`;
}

/** A prompt as the model saw it, with the tools and the template's own text; otherwise the messages where they are known. */
function renderBody(segment: Segment, style: ShowStyle): string[] {
  const { messages } = segment;
  if (messages.length === 0 || (segment.kind === 'prompt' && segment.text !== ''))
    return segment.text === '' ? [] : renderText(segment.text, style);
  return messages.flatMap((message) => renderMessage(message, style));
}

function renderMessage(message: Message, style: ShowStyle): string[] {
  const { paint } = style;
  const label = message.name === undefined ? message.role : `${message.role} ${message.name}`;
  const thought = message.reasoning === undefined ? [] : renderText(message.reasoning, style).map((line) => paint('dim', line));
  const content = message.content.trim() === '' ? [] : renderText(message.content.replace(/^\n+|\n+$/g, ''), style);
  const calls = (message.tool_calls ?? []).flatMap((call) => renderCall(call, style));
  const empty = thought.length + content.length + calls.length === 0 ? [paint('dim', '  (empty)')] : [];
  return [paint('bold', label), ...thought, ...content, ...calls, ...empty];
}

function renderText(text: string, { columns }: ShowStyle): string[] {
  return wrap(toVisible(text), columns - 2).map((line) => (line === '' ? '' : `  ${line}`));
}

/** An argument of several lines, such as a command, keeps its lines. */
function renderCall(call: ToolCall, { paint, columns }: ShowStyle): string[] {
  const rows = Object.entries(call.arguments).flatMap(([name, value]) => {
    const text = toVisible(typeof value === 'string' ? value : JSON.stringify(value));
    return wrap(text, columns - 8 - name.length).map(
      (line, index) => `    ${padEnd(index === 0 ? `${name}:` : '', name.length + 2)}${line}`,
    );
  });
  return [`  ${paint('magenta', `→ ${toVisible(call.name)}`)}`, ...rows];
}

function renderTokens(segment: Segment, options: ShowOptions, style: ShowStyle): string[] {
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

/** White space is part of a token, so it is made visible. */
function toVisibleToken(text: string): string {
  return toVisible(text.replaceAll('\n', '⏎').replaceAll('\t', '⇥').replaceAll(' ', '·'));
}

/** Every other token is inverse, so that neighbours can be distinguished. */
function packPainted(cells: readonly string[], { paint, columns }: ShowStyle): string[] {
  return packCells(cells, columns - 2, 2).map(
    (line) => `  ${line.map(({ text, odd }) => paint(odd ? 'inverse' : 'dim', ` ${text} `)).join('')}`,
  );
}

function packMarked(cells: readonly string[], { columns }: ShowStyle): string[] {
  return packCells(cells, columns - 3, 1).map((line) => `  |${line.map(({ text }) => `${text}|`).join('')}`);
}

interface TokenCell {
  readonly text: string;
  readonly odd: boolean;
}

function packCells(cells: readonly string[], columns: number, around: number): TokenCell[][] {
  const lines: TokenCell[][] = [];
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
