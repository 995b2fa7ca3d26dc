// Asks a process of a benchmark for one answer. It fails if the process ends instead.

import type { ChildProcess, Serializable } from 'node:child_process';
import { once } from 'node:events';

export async function askProcess<Answer extends object>(child: ChildProcess, order: Serializable): Promise<Answer> {
  const over = new AbortController();
  const [message, exit] = [once(child, 'message', over), once(child, 'exit', over)];
  for (const one of [message, exit]) one.catch(() => {}); // the other came first
  child.send(order);
  const [answer] = await Promise.race([message, exit]);
  over.abort();
  if (typeof answer !== 'object' || answer === null) throw new Error(`a process of the benchmark ended with ${answer}`);
  return answer as Answer;
}
