// The rollouts that the dashboard lists, in memory: any window of any filter and order of a hundred thousand of them takes milliseconds
// and nothing of the store. It answers from what it was given; who fills it keeps it true.

import type { BriefPage, BriefQuery, BriefRollout, BriefSort, DashboardSummary } from '@millrace/protocol';
import { type BriefSource, type IndexedRollout, toIndexed } from './brief.ts';
import { summarise } from './summary.ts';

type IndexRow = IndexedRollout & { readonly order: number };

/** A window is answered from the same list as the one before, so that scrolling sees no line twice. */
interface IndexAnswer {
  readonly key: string;
  /** When it is made again. */
  readonly until: number;
  readonly rows: readonly IndexRow[];
  readonly meanReward: number | null;
}

const freshMs = 1000;
/** What is expensive is made less often, so that a list costs at most a fiftieth of a core however large it is. */
const restPerWork = 50;
const mostAnswers = 8;

export class RolloutIndex {
  readonly #now: () => number;
  readonly #rows = new Map<string, IndexRow>();
  #answers: IndexAnswer[] = [];
  #summary: { readonly until: number; readonly value: Omit<DashboardSummary, 'indexed' | 'complete'> } | undefined;
  #newest = 0;
  #oldest = 0;
  #complete = false;

  /** `now` counts milliseconds and never goes back. */
  constructor(now: () => number) {
    this.#now = now;
  }

  get complete(): boolean {
    return this.#complete;
  }

  /** From here on, everything that the store has is here, or as much as is kept. */
  markComplete(): void {
    this.#complete = true;
    this.#summary = undefined;
  }

  get size(): number {
    return this.#rows.size;
  }

  has(id: string): boolean {
    return this.#rows.has(id);
  }

  ids(): Iterable<string> {
    return this.#rows.keys();
  }

  /** A known rollout keeps its place. A new one is the newest, or the oldest if it is `older`. */
  set(source: BriefSource, { older = false } = {}): void {
    const known = this.#rows.get(source.id);
    const order = known?.order ?? (older ? --this.#oldest : ++this.#newest);
    this.#rows.set(source.id, { ...toIndexed(source), order });
  }

  /** False if it is not known. */
  move(id: string, state: BriefRollout['state'], attempt: number): boolean {
    const known = this.#rows.get(id);
    if (known === undefined) return false;
    this.#rows.set(id, { ...known, brief: { ...known.brief, state, attempt } });
    return true;
  }

  delete(id: string): void {
    this.#rows.delete(id);
  }

  page(query: BriefQuery): BriefPage {
    const { offset, limit } = query;
    const { rows, meanReward } = this.#find(query);
    return {
      total: rows.length,
      mean_reward: meanReward,
      offset,
      rows: rows.slice(offset, offset + limit).map(({ brief }) => this.#rows.get(brief.id)?.brief ?? brief),
      indexed: this.size,
      complete: this.complete,
    };
  }

  summary(): DashboardSummary {
    const at = this.#now();
    if (this.#summary === undefined || !this.complete || at >= this.#summary.until) {
      const value = summarise([...this.#rows.values()].map(({ brief }) => brief));
      this.#summary = { until: this.#restUntil(at), value };
    }
    return { ...this.#summary.value, indexed: this.size, complete: this.complete };
  }

  #restUntil(startedAt: number): number {
    const now = this.#now();
    return now + Math.max(freshMs, restPerWork * (now - startedAt));
  }

  #find({ offset: _offset, limit: _limit, ...query }: BriefQuery): IndexAnswer {
    // While it is being filled, each reading has more.
    const key = JSON.stringify([query, this.complete || this.size]);
    const at = this.#now();
    this.#answers = this.#answers.filter((one) => at < one.until);
    const known = this.#answers.find((one) => one.key === key);
    if (known !== undefined) return known;
    const rows = [...this.#rows.values()].filter(toFilter(query)).sort(toComparison(query.sort, query.order));
    const meanReward = meanOf(rows.flatMap(({ brief }) => brief.reward ?? []));
    const answer = { key, until: this.#restUntil(at), rows, meanReward };
    this.#answers = [...this.#answers.slice(1 - mostAnswers), answer];
    return answer;
  }
}

function toFilter(query: Omit<BriefQuery, 'offset' | 'limit'>): (row: IndexRow) => boolean {
  const { state, scenario, group, batch, blame, code, reward_min: min, reward_max: max, rewarded, version } = query;
  const words = query.text?.toLowerCase().split(/\s+/).filter(Boolean) ?? [];
  return ({ brief, text }) =>
    (state === undefined || isIn(brief, state)) &&
    (scenario === undefined || brief.scenario === scenario) &&
    (group === undefined || brief.group === group) &&
    (batch === undefined || brief.batch === batch) &&
    (blame === undefined || brief.blame === blame) &&
    (code === undefined || brief.code === code) &&
    (min === undefined || (brief.reward !== null && brief.reward >= min)) &&
    (max === undefined || (brief.reward !== null && brief.reward <= max)) &&
    (rewarded === undefined || (brief.reward !== null) === (rewarded === 'yes')) &&
    (version === undefined || brief.version === version) &&
    words.every((word) => text.includes(word));
}

function isIn({ state, ended_at }: BriefRollout, wanted: NonNullable<BriefQuery['state']>): boolean {
  if (wanted === 'live') return ended_at === null;
  if (wanted === 'ended') return ended_at !== null;
  return state === wanted;
}

const values: Readonly<Record<Exclude<BriefSort, 'id'>, (row: IndexRow) => number | null>> = {
  created: ({ order }) => order,
  ended: ({ brief }) => brief.ended_at,
  reward: ({ brief }) => brief.reward,
  turns: ({ brief }) => brief.turns,
  sampled: ({ brief }) => brief.sampled,
  busy: ({ brief }) => brief.busy_ms,
  version: ({ brief }) => brief.version,
};

/** Lines without a value come last in both orders; equal ones are newest first. */
function toComparison(sort: BriefSort, order: 'desc' | 'asc'): (left: IndexRow, right: IndexRow) => number {
  const sign = order === 'desc' ? -1 : 1;
  if (sort === 'id') return (left, right) => sign * (left.brief.id < right.brief.id ? -1 : 1);
  const read = values[sort];
  return (left, right) => {
    const [one, other] = [read(left), read(right)];
    if (one === other) return right.order - left.order;
    if (one === null || other === null) return one === null ? 1 : -1;
    return sign * (one - other);
  };
}

function meanOf(numbers: readonly number[]): number | null {
  return numbers.length === 0 ? null : numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
}
