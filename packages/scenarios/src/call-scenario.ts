// Calls into a scenario's own code: the one place where what a scenario throws becomes a RolloutError with a blame.

import { isOwnCode } from '@millrace/base/parts';
import { type ErrorCode, messageOf, RolloutError } from '@millrace/protocol';
import { isScenarioError, type ScenarioBlame } from './scenario-error.ts';

const codes: Readonly<Record<ScenarioBlame, ErrorCode>> = {
  task: 'task-failed',
  policy: 'policy-failed',
  sandbox: 'sandbox-failed',
  verifier: 'evaluate-failed',
};

interface ScenarioCall {
  /** What was called, for the message: `scenario column-sum: evaluate`. */
  readonly what: string;
  /** The code of an error that names no blame. */
  readonly code: ErrorCode;
  /** Whether the sandbox may hold the agent's work: then a file that is not there is blamed on the policy. */
  readonly hasAgentActed?: boolean;
}

/** Calls the scenario's code. What it throws becomes a RolloutError whose message names the function, the file and the line. */
export async function callScenario<T>({ what, code, hasAgentActed = false }: ScenarioCall, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isPassed(error)) throw error;
    const place = findPlace(error);
    const message = `${what}: ${describe(error)}${place === undefined ? '' : ` (${place})`}`;
    const isMissing = hasAgentActed && error instanceof RolloutError && error.code === 'not-found';
    throw new RolloutError(isScenarioError(error) ? codes[error.blame] : isMissing ? 'policy-failed' : code, message, { cause: error });
  }
}

/** Errors of our own that have their blame already. One that blames the caller of a sandbox's method blames the scenario. */
function isPassed(error: unknown): boolean {
  return error instanceof RolloutError && (error.blame !== 'caller' || error.code === 'cancelled');
}

function describe(error: unknown): string {
  const isPlain = !(error instanceof Error) || error.name === 'Error' || error instanceof RolloutError || isScenarioError(error);
  return isPlain ? messageOf(error) : `${error.name}: ${error.message}`;
}

/** The stack starts with the message, which may hold the text of an agent. */
const longestLine = 1000;

/** The innermost line of the scenario's own code: not Node's, not a package's, not ours. */
export function findPlace(error: unknown): string | undefined {
  if (error instanceof Error && 'place' in error && typeof error.place === 'string') return error.place; // of a scenario in Python
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  // Node puts the place of a syntax error before the message.
  const [, file] = /^(?:file:\/\/)?(\/[^\n]+:\d+)\n/.exec(stack) ?? [];
  if (file !== undefined) return file;
  for (const line of stack.split('\n').filter(({ length }) => length < longestLine)) {
    const [, url, place] = /(file:\/\/\/[^\s()]+?)(:\d+:\d+)\)?$/.exec(line) ?? [];
    if (url === undefined || isOwnCode(url) || url.includes('/node_modules/')) continue;
    return `${decodeURIComponent(new URL(url).pathname)}${place}`;
  }
  return undefined;
}
