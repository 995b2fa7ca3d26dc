// How many groups to begin now: enough that those in flight will probably meet the target, by the observed share of informative
// groups and what each open group has shown so far, and no more than there are places to run them.

export interface OpenView {
  /** Rewards so far. */
  readonly rewards: number;
  /** They are informative already. */
  readonly assured: boolean;
}

export interface RefillView {
  readonly target: number;
  readonly delivered: number;
  /** Judged and not informative. */
  readonly rejected: number;
  readonly groupSize: number;
  readonly open: readonly OpenView[];
  /** What the series has shown before. */
  readonly before?: { readonly informative: number; readonly judged: number };
  readonly load: { readonly queued: number; readonly active: number; readonly slots: number };
}

/** What a share is taken to be before anything was seen, and after how many groups what was seen weighs as much. */
const firstShare = 0.85;
const firstWeight = 2;
const seriesWeight = 16;
/** Of the doubt about the open groups, how many standard deviations are covered by more groups. */
const cover = 0.25;
/** Rollouts that wait so that no slot stands empty between an end and the next beginning, as a share of the slots. */
const backlogShare = 1 / 16;

export function countToBegin(view: RefillView): number {
  return Math.max(0, Math.min(countWanted(view), countPlaces(view)));
}

/** Groups that are missing to the target, whatever room there is. */
export function countWanted(view: RefillView): number {
  const missing = view.target - view.delivered;
  if (missing <= 0) return 0;
  const share = estimateShare(view);
  const chances = view.open.map((group) => chanceOf(group, share, view.groupSize));
  const expected = sum(chances);
  const doubt = Math.sqrt(sum(chances.map((chance) => chance * (1 - chance))));
  const lacking = missing - expected + (missing > expected - doubt ? cover * doubt : 0);
  // A last group is begun when the open ones fall short by half of what it may bring.
  return lacking <= 0 ? 0 : Math.round(lacking / share + (view.open.length === 0 ? 0.5 : 0));
}

/** The share of informative groups: what was judged, and each open group by its chance, in the light of what was seen before. */
export function estimateShare(view: RefillView): number {
  const { informative, judged } = view.before ?? { informative: 0, judged: 0 };
  const known = Math.min(judged, seriesWeight);
  const seen = judged === 0 ? 0 : (informative / judged) * known;
  const prior = (seen + firstShare * firstWeight) / (known + firstWeight);
  const weight = known + firstWeight;
  const shown = view.open.filter(({ rewards }) => rewards > 1);
  const chances = sum(shown.map((group) => chanceOf(group, prior, view.groupSize)));
  const share = (view.delivered + chances + prior * weight) / (view.delivered + view.rejected + shown.length + weight);
  return Math.min(1, Math.max(1 / 64, share));
}

/**
 * The chance that a group will be informative. `k` equal rewards of `n` speak against it as they would if every rate of success
 * were as likely as any other: then the first k are equal with 2 / (k + 1).
 */
export function chanceOf({ rewards, assured }: OpenView, share: number, groupSize: number): number {
  if (assured) return 1;
  if (rewards === 0) return share;
  const ofAll = 2 / (groupSize + 1);
  const likely = Math.max(0, 2 / (rewards + 1) - ofAll) / (1 - ofAll);
  return (share * likely) / (share * likely + 1 - share + 1e-9);
}

/** A batch with nothing open may always begin one group, so that it takes its turn behind whatever else waits. */
function countPlaces({ groupSize, load, open }: RefillView): number {
  const slots = Math.max(load.slots, groupSize);
  const backlog = Math.max(groupSize - 1, Math.ceil(slots * backlogShare));
  const room = Math.floor((slots + backlog - load.queued - load.active) / groupSize);
  return Math.max(room, open.length === 0 ? 1 : 0);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
