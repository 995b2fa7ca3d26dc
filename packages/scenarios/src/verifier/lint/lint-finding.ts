// What the linter of checks finds.

export type LintRule =
  | 'syntax'
  | 'arithmetic'
  | 'pattern'
  | 'unquoted'
  | 'judged-status'
  | 'judged-file'
  | 'runs-agent-file'
  | 'reward-subshell'
  | 'reward-word'
  | 'exec';

export interface LintFinding {
  readonly rule: LintRule;
  /** An error refuses a task of the shell scenario; a warning is reported. */
  readonly severity: 'error' | 'warning';
  /** The first line is 1. */
  readonly line: number;
  readonly message: string;
}

/** What a rule reports: where it is in the script. */
export type LintFault = Omit<LintFinding, 'line'> & { readonly pos: number };
