// The side of a pool that runs in its threads: calls functions by name and answers with their values.

import { setPriority } from 'node:os';
import { type MessagePort, parentPort } from 'node:worker_threads';

export interface FunctionCall {
  readonly name: string;
  readonly args: readonly unknown[];
}

/** With the CPU time that the thread has used so far, in milliseconds. */
export type FunctionReply = { readonly cpuMs: number } & (
  | { readonly kind: 'ready' }
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'exhausted'; readonly by: 'memory' | 'stack' }
  | { readonly kind: 'error'; readonly error: unknown }
);

// biome-ignore lint/suspicious/noExplicitAny: the callers know the types
type ServedFunction = (...args: any[]) => unknown;

/** The event loop of the process goes first when both want the same core. */
const priority = 5;

/** Called by the entry of a thread; does nothing elsewhere. */
export function serveFunctions(functions: readonly ServedFunction[]): void {
  if (!parentPort) return;
  const byName = new Map(functions.map((one) => [one.name, one]));
  if (byName.size < functions.length) throw new Error('two functions have the same name');
  if (process.platform === 'linux') setPriority(priority); // of this thread only
  serve(parentPort, byName);
}

function serve(port: MessagePort, functions: ReadonlyMap<string, ServedFunction>): void {
  const cpuMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  port.on('message', async (call: FunctionCall) => {
    try {
      const work = functions.get(call.name);
      if (!work) throw new Error(`there is no function ${call.name} in this thread`);
      const value = await work(...call.args);
      port.postMessage({ kind: 'value', value, cpuMs: cpuMs() } satisfies FunctionReply);
    } catch (error) {
      const by = exhaustedBy(error);
      port.postMessage({ ...(by === undefined ? { kind: 'error', error } : { kind: 'exhausted', by }), cpuMs: cpuMs() });
    }
  });
  port.postMessage({ kind: 'ready', cpuMs: cpuMs() } satisfies FunctionReply);
}

/** Sizes that the engine refuses. Other range errors are mistakes of the function. */
function exhaustedBy(error: unknown): 'memory' | 'stack' | undefined {
  if (!(error instanceof RangeError)) return undefined;
  if (error.message.includes('call stack size')) return 'stack';
  return /^Invalid (?:string|array|array buffer|typed array) length|^Array buffer allocation failed|maximum size exceeded|Maximum BigInt size/i.test(
    error.message,
  )
    ? 'memory'
    : undefined;
}
