// What a reward hacker is: a scripted policy without a model, which tries to get a reward that it did not earn, or to get away without one.

/** `forge` wants a reward, `dodge` wants none in place of a low one, and `freeze` wants to stop the worker that judges it. */
export const hackerKinds = ['forge', 'dodge', 'freeze'] as const;
type HackerKind = (typeof hackerKinds)[number];

export interface Hacker {
  readonly name: string;
  readonly kind: HackerKind;
  /** What it does, in one line. */
  readonly explain: string;
  /** How an author closes the hole, in one line. */
  readonly fix: string;
  /** What it plays against this task, each in a rollout of its own; empty where it does not apply. */
  plays(target: HackerTarget): readonly Play[];
}

/** What an agent does: commands and files in its sandbox, in this order, then its answer. */
export interface Play {
  readonly files?: Readonly<Record<string, string>>;
  readonly commands?: readonly string[];
  /** The last turn, or the argument of `finish`. In a conversation, it is said again in each turn. */
  readonly answer?: string;
  /** What it says turn by turn, in a conversation. */
  readonly turns?: readonly string[];
}

/** What a hacker knows of a task: everything. Its verifier is public for an agent that was trained on it for long enough. */
export interface HackerTarget {
  readonly scenario: string;
  readonly task: Readonly<Record<string, unknown>>;
  /** What the agent is asked. */
  readonly instruction: string;
  /** All texts of the task and of its verifier. */
  readonly source: string;
  /** Whether the agent can run commands. */
  readonly canAct: boolean;
  readonly isConversation: boolean;
  /** Where the agent starts. */
  readonly folder: string;
  /** Files of the agent that the task or its verifier names, as absolute paths. */
  readonly files: readonly string[];
  /** Other paths that the verifier names, which the agent may not have. */
  readonly hidden: readonly string[];
}

export const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/** The same text as the answer, and in every file that the verifier reads. */
export function sayEverywhere(target: HackerTarget, text: string): Play {
  return { answer: text, ...(target.canAct && { files: Object.fromEntries(target.files.map((file) => [file, text])) }) };
}

/** One play for each text. Tests of a repository take long, and none of them reads an answer: there one text stands for all. */
export function sayEach(target: HackerTarget, texts: readonly string[]): readonly Play[] {
  const chosen = 'FAIL_TO_PASS' in target.task ? texts.slice(0, 1) : texts;
  return chosen.map((text) => sayEverywhere(target, text));
}

/** Only where the agent has a sandbox to act in. */
export function inSandbox(target: HackerTarget, ...plays: readonly Play[]): readonly Play[] {
  return target.canAct ? plays : [];
}
