// A service with the trial scenario, and a fake vLLM whose replies are known. `runs` are the tasks that every adapter runs.

import { join } from 'node:path';
import { type FakeBackend, openFakeBackend, type Policy, qwen3Folder, renderCall, TestService } from '@millrace/testkit';

/** In the branch after the compaction the opening says so; words fill the context before it. */
const policy: Policy = (input) => {
  const opening = input.opening();
  if (opening.includes('You looked at every shelf')) return { text: renderCall('finish', { answer: 'five' }) };
  if (input.turn === 0) return { text: `I look first.\n${renderCall('look', { shelf: 'top "left"' })}` };
  if (opening.includes('branches: ')) return { text: `${'and then I look again '.repeat(60)}${renderCall('look', { shelf: 'low' })}` };
  return { text: renderCall('finish', { answer: opening.includes('wrong') ? 'six' : 'five' }) };
};

export const runs = {
  right: { scenario: 'trial', task: { kind: 'tools', question: 'How many things?', answer: 'five' } },
  wrong: { scenario: 'trial', task: { kind: 'tools', question: 'How many things? (wrong)', answer: 'five' } },
  branched: { scenario: 'trial', task: { kind: 'branches', question: 'How many?', answer: 'five' }, limits: { max_context_tokens: 700 } },
  unscored: { scenario: 'trial', task: { kind: 'unscored', question: 'How many?', answer: 'five' }, limits: { max_retries: 0 } },
};

/** A prompt that the fake backend answers only after a minute. */
export const slowRun = { scenario: 'trial', task: { kind: 'tools', question: 'How many things? '.repeat(300), answer: 'five' } };

export interface TrialService extends AsyncDisposable {
  readonly service: TestService;
  readonly backend: FakeBackend;
}

/** The backend joins, unless the adapter is to join it. */
export async function openTrialService({ joins = true } = {}): Promise<TrialService> {
  await using stack = new AsyncDisposableStack();
  const latencyMs = ({ promptTokens }: { readonly promptTokens: number }) => (promptTokens > 1000 ? 60_000 : 1);
  const backend = stack.use(await openFakeBackend({ policy, latencyMs, routedExperts: true, samplingMask: true, isProcessed: true }));
  const scenarios = [join(import.meta.dirname, 'trial-scenario.ts')];
  const service = stack.use(await TestService.open({ workers: 1, tokenizer: qwen3Folder(), scenarios }));
  if (joins) await service.client.backends.join({ url: backend.url });
  const owned = stack.move();
  return { service, backend, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
