// What the demo prints: for each question what the model said, as marks and words, and the numbers at the end.

import type { RolloutView, Trajectory } from '@millrace/protocol';

export interface Style {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly green: (text: string) => string;
  readonly red: (text: string) => string;
}

export function openStyle(isColoured: boolean): Style {
  const code = (on: number, off: number) => (text: string) => (isColoured ? `\x1b[${on}m${text}\x1b[${off}m` : text);
  return { bold: code(1, 22), dim: code(2, 22), green: code(32, 39), red: code(31, 39) };
}

export interface SampledReport {
  readonly view: RolloutView;
  readonly question: string;
  readonly trajectory: Trajectory;
}

/** One block for each group: the question, a mark for each sibling, the mean reward, and two of the replies. */
export function renderGroups(all: readonly SampledReport[], { bold, dim, green, red }: Style, width: number): string[] {
  const groups = [...Map.groupBy(all, ({ view }) => view.group ?? view.id).entries()];
  return groups
    .sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))
    .flatMap(([, siblings]) => {
      const marks = siblings.map(({ view }) => (view.reward === 1 ? green('●') : red('○'))).join(' ');
      const mean = siblings.reduce((sum, { view }) => sum + (view.reward ?? 0), 0) / siblings.length;
      const shown = [siblings.find(({ view }) => view.reward === 1), siblings.find(({ view }) => view.reward !== 1)];
      return [
        `  ${bold((siblings[0]?.question ?? '').padEnd(20))} ${marks}  ${dim(`mean reward ${mean.toFixed(2)}`)}`,
        ...shown.flatMap((one) => (one ? [renderReply(one, { dim, green, red }, width)] : [])),
        '',
      ];
    });
}

function renderReply(
  { view, trajectory }: SampledReport,
  { dim, green, red }: Pick<Style, 'dim' | 'green' | 'red'>,
  width: number,
): string {
  const said = trajectory.segments.filter(({ kind }) => kind === 'sampled');
  const text = said
    .flatMap(({ messages }) => messages.map(({ content }) => content))
    .join(' ')
    .replace(/\s+/g, ' ')
    .trim();
  const tokens = said.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0);
  const logprobs = said.flatMap((segment) => [...segment.logprobs]);
  const mean = logprobs.reduce((sum, logprob) => sum + logprob, 0) / Math.max(1, logprobs.length);
  const note = `${tokens} tokens, mean logprob ${mean.toFixed(2)}`;
  const room = Math.max(20, width - note.length - 10);
  const cut = text.length > room ? `${text.slice(0, room - 1)}…` : text.padEnd(room);
  return `    ${view.reward === 1 ? green('│') : red('│')} ${cut}  ${dim(note)}`;
}

export interface Totals {
  readonly seconds: number;
  readonly sampledTokens: number;
  readonly promptTokens: number;
  /** As the engine reports them. */
  readonly cachedTokens: number;
}

export function renderTotals(
  all: readonly SampledReport[],
  { seconds, sampledTokens, promptTokens, cachedTokens }: Totals,
  { bold }: Style,
): string[] {
  const rewards = all.map(({ view }) => view.reward ?? 0);
  const informative = [...Map.groupBy(all, ({ view }) => view.group).values()].filter(
    (siblings) => new Set(siblings.map(({ view }) => view.reward)).size > 1,
  );
  const rows = [
    ['rollouts', `${all.length} in ${new Set(all.map(({ view }) => view.group)).size} groups, ${seconds.toFixed(1)} s`],
    [
      'mean reward',
      `${(rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length).toFixed(2)}, ${informative.length} groups informative`,
    ],
    ['sampled', `${sampledTokens.toLocaleString('en')} tokens, ${(sampledTokens / seconds).toFixed(1)} tokens/s`],
    ['prompt tokens', `${promptTokens.toLocaleString('en')}, of which ${percent(cachedTokens, promptTokens)} from the prefix cache`],
  ];
  return rows.map(([name, value]) => `  ${`${name}`.padEnd(15)} ${bold(`${value}`)}`);
}

function percent(part: number, whole: number): string {
  return whole === 0 ? '0 %' : `${Math.round((100 * part) / whole)} %`;
}
