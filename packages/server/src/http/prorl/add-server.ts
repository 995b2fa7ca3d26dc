// /add_llm_server: an address says nothing about the server behind it, so each dialect is tried, and the first that the server has is used.

import { type Dialect, joinRequest } from '@millrace/protocol';
import type { AppContext } from '../context/context.ts';
import { check } from '../request/check.ts';
import { joinBackend, toNewBackend } from '../routes/backend-routes.ts';
import { toBackendUrl } from './prorl-mapping.ts';

/** In the order of preference. SGLang has vLLM's /v1/completions too, and is recognised by its name. */
const tried: readonly Dialect[] = ['sglang', 'vllm', 'llamacpp', 'prorl', 'chat'];

/** What the original answers. */
export async function addServer(address: string, context: AppContext): Promise<string> {
  const join = await check(
    joinRequest.pick({ url: true, dialect: true, logprobs_mode: true }),
    { url: toBackendUrl(address) },
    { at: ['address'] },
  );
  const backend = toNewBackend(join);
  const known = (await context.store.backends()).some(
    ({ id, state, health }) => id === backend.id && state === 'up' && health?.brokenAtMs === undefined,
  );
  if (known) return `LLM server address is already known: ${address}`;
  await joinBackend({ ...join, dialect: await findDialect(join, context) }, context);
  return `Added LLM server address: ${address}`;
}

/** vLLM's where none works: the server joins as broken, with the reason. */
async function findDialect(join: Parameters<typeof toNewBackend>[0], { probe }: AppContext): Promise<Dialect> {
  const answers = await Promise.all(
    tried.map(async (dialect) => {
      const found = await probe(toNewBackend({ ...join, dialect })).catch(() => undefined);
      return { dialect, isUsable: found !== undefined && (dialect !== 'sglang' || found.engine === 'sglang') };
    }),
  );
  return answers.find(({ isUsable }) => isUsable)?.dialect ?? 'vllm';
}
