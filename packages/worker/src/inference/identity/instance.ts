// Which start of a server answers, in one cheap question: vLLM's metrics have the time at which its process started, SGLang reports how long
// this start took and the seed that it drew. llama-server and servers that are not an engine report nothing of the kind.

import { z } from 'zod';
import { type Ask, type AskedServer, parseAnswer } from './ask-server.ts';

/** With the last slash vLLM honours the filter, and computes this metric alone instead of all of its 50 KB. */
const startTimePaths = ['/metrics/?name[]=process_start_time_seconds', '/metrics'];
const sglangStart = z.looseObject({ startup_time: z.number().optional(), random_seed: z.number().optional() });

/** Undefined if the server does not report it: then only its other facts tell it from another. */
export async function readInstance({ dialect }: Pick<AskedServer, 'dialect'>, ask: Ask): Promise<string | undefined> {
  if (dialect === 'sglang') {
    const { startup_time: took, random_seed: seed } = parseAnswer(sglangStart, await ask('GET', '/server_info')) ?? {};
    return took === undefined && seed === undefined ? undefined : `${took ?? ''}/${seed ?? ''}`;
  }
  if (!dialect.startsWith('vllm')) return undefined;
  for (const path of startTimePaths) {
    const { status, text } = await ask('GET', path);
    if (status === 200) return /^process_start_time_seconds (\S+)$/m.exec(text)?.[1];
  }
  return undefined;
}
