// The threads in which agents' texts are graded. A text that uses up its grader has the lowest verdict; if the expected text does so too,
// the verifier is at fault.

import { findParts } from '@millrace/base/parts';
import { ThreadPool } from '@millrace/base/threads/thread-pool';
import { toVerifierFault } from './verifier-fault.ts';

/** Shared by all scenarios of a process: a thread starts with the first text, and ends with the process. */
const pool = new ThreadPool({ entry: findParts().graderThread, name: 'graders', threads: 2, heapMiB: 512 });

/** Far more than any text of an honest agent needs. */
const usualCpuMs = 3000;

interface GradeCall<Args> {
  /** The same call for the expected texts: if one of them exhausts the grader, the text of the agent is not to blame. */
  readonly controls?: () => readonly Readonly<Args>[];
  readonly cpuMs?: number;
  readonly transfer?: readonly Uint8Array[];
  readonly signal?: AbortSignal | undefined;
}

/** Undefined if the text exhausts its grader. The function must be in load/grader-thread.ts. */
export async function gradeInThread<Args extends readonly unknown[], Value>(
  work: (...args: Args) => Value,
  args: Readonly<Args>,
  { controls = () => [], cpuMs = usualCpuMs, ...rest }: GradeCall<Args>,
): Promise<Awaited<Value> | undefined> {
  const outcome = await pool.call(work, args, { cpuMs, ...rest });
  if (outcome.kind === 'value') return outcome.value;
  for (const control of controls()) {
    const { kind } = await pool.call(work, control, { cpuMs, signal: rest.signal });
    if (kind === 'exhausted') throw toVerifierFault(`the expected answer exhausts its grader (${outcome.by}): make it shorter`);
  }
  return undefined;
}
