// How many groups to start now: enough that the open ones will probably meet the target, given the observed share of informative
// groups and the rewards of each open group so far, but no more than there is room to run.

interface OpenView {
  /** The number of rewards so far. */
  readonly rewards: number;
  /** The group is already informative. */
  readonly assured: boolean;
}

export interface RefillView {
  readonly target: number;
  readonly delivered: number;
  /** Judged and not informative. */
  readonly rejected: number;
  readonly groupSize: number;
  readonly open: readonly OpenView[];
  /** What the previous batch of the series showed. */
  readonly before?: { readonly informative: number; readonly judged: number };
  readonly load: { readonly queued: number; readonly active: number; readonly slots: number };
}

/** The prior for the informative share, and its weight in groups. */
const firstShare = 0.85;
const firstWeight = 2;
const seriesWeight = 16;
/** How many standard deviations of the expected outcome extra groups cover. */
const cover = 0.25;
/** Queued rollouts that keep slots busy between one end and the next start, as a share of the slots. */
const backlogShare = 1 / 16;

export function countToBegin(view: RefillView): number {
  return Math.max(0, Math.min(countWanted(view), countPlaces(view)));
}

/** Groups needed to meet the target, regardless of room. */
export function countWanted(view: RefillView): number {
  const missing = view.target - view.delivered;
  if (missing <= 0) return 0;
  const share = estimateShare(view);
  const chances = view.open.map((group) => chanceOf(group, share, view.groupSize));
  const expected = sum(chances);
  const doubt = Math.sqrt(sum(chances.map((chance) => chance * (1 - chance))));
  const lacking = missing - expected + (missing > expected - doubt ? cover * doubt : 0);
  // The last group starts when the open ones fall short by half of what it can be expected to add.
  return lacking <= 0 ? 0 : Math.round(lacking / share + (view.open.length === 0 ? 0.5 : 0));
}

/** The share of informative groups: judged groups, open groups by their chance, and the prior. */
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
 * The chance that a group will be informative. With a uniform prior over success rates, the first `k` rewards are equal with
 * probability 2 / (k + 1); the chance drops accordingly with each equal reward.
 */
export function chanceOf({ rewards, assured }: OpenView, share: number, groupSize: number): number {
  if (assured) return 1;
  if (rewards === 0) return share;
  const ofAll = 2 / (groupSize + 1);
  const likely = Math.max(0, 2 / (rewards + 1) - ofAll) / (1 - ofAll);
  return (share * likely) / (share * likely + 1 - share + 1e-9);
}

/** A batch without open groups may always start one, which then queues behind other work. */
function countPlaces({ groupSize, load, open }: RefillView): number {
  const slots = Math.max(load.slots, groupSize);
  const backlog = Math.max(groupSize - 1, Math.ceil(slots * backlogShare));
  const room = Math.floor((slots + backlog - load.queued - load.active) / groupSize);
  return Math.max(room, open.length === 0 ? 1 : 0);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
