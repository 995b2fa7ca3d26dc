// Where our comparison of outputs and the checkers of LiveCodeBench and APPS differ on purpose, and why.

export interface Differing {
  readonly given: string;
  readonly expected: string;
  readonly ours: boolean;
  readonly theirs: boolean;
}

export interface OutputDifference {
  readonly why: string;
  applies(one: Differing): boolean;
}

export const livecodebenchDifferences: readonly OutputDifference[] = [];
export const appsDifferences: readonly OutputDifference[] = [];
export const callDifferences: readonly OutputDifference[] = [];
