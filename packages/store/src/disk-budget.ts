// Decides when the store is full: its file and log have used up their budget, or too little is free on its disk. Then it accepts
// nothing new, so that what is running can still be saved.

import type { StoreSize } from './store.ts';

export interface DiskLimits {
  /** For the file and its write-ahead log; no limit unless set. Pages inside the file that can be used again do not count. */
  readonly budgetBytes?: number;
  /** What must be free on the disk. */
  readonly leastFreeBytes: number;
}

export const unlimitedDisk: DiskLimits = { leastFreeBytes: 0 };

/** A full store accepts work again when it is this much below its limits, so that its state does not flap. */
const slack = 0.05;

export class DiskBudget {
  readonly #limits: DiskLimits;
  #isFull = false;

  constructor(limits: DiskLimits) {
    this.#limits = limits;
  }

  /** Why the store is full and what to do; undefined while it is not. */
  judge(size: Omit<StoreSize, 'full'>): string | undefined {
    const reason = this.#findReason(size, this.#isFull ? slack : 0);
    this.#isFull = reason !== undefined;
    return reason;
  }

  #findReason({ fileBytes, walBytes, reusableBytes, freeBytes }: Omit<StoreSize, 'full'>, margin: number): string | undefined {
    const { budgetBytes, leastFreeBytes } = this.#limits;
    const used = fileBytes + walBytes - reusableBytes;
    if (freeBytes < leastFreeBytes * (1 + margin))
      return `its disk has ${toMib(freeBytes)} free and needs ${toMib(leastFreeBytes)} (store.leastFreeMib): free some space on that disk, or run \`millrace store compact\``;
    if (budgetBytes !== undefined && used > budgetBytes * (1 - margin))
      return `it uses ${toMib(used)} of its budget of ${toMib(budgetBytes)} (store.budgetMib): shorten the ages in \`retention\`, or raise the budget`;
    return undefined;
  }
}

/** For callers: what happens to their request, and why. */
export function toFullMessage(reason: string): string {
  return `the store is full and accepts nothing new until there is space; what is running will finish. ${reason[0]?.toUpperCase()}${reason.slice(1)}`;
}

function toMib(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(bytes < 10 * 2 ** 20 ? 1 : 0)} MiB`;
}
