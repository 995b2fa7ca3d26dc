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

export const runs = [
  { scenario: 'trial', task: { kind: 'tools', question: 'How many things?', answer: 'five' } },
  { scenario: 'trial', task: { kind: 'tools', question: 'How many things? (wrong)', answer: 'five' } },
  { scenario: 'trial', task: { kind: 'branches', question: 'How many?', answer: 'five' }, limits: { max_context_tokens: 700 } },
  { scenario: 'trial', task: { kind: 'unscored', question: 'How many?', answer: 'five' }, limits: { max_retries: 0 } },
] as const;

export interface TrialService extends AsyncDisposable {
  readonly service: TestService;
  readonly backend: FakeBackend;
}

/** The backend joins, unless the adapter is to join it. */
export async function openTrialService({ join: joins = true } = {}): Promise<TrialService> {
  const stack = new AsyncDisposableStack();
  const backend = stack.use(await openFakeBackend({ policy }));
  const scenario = join(import.meta.dirname, 'trial-scenario.ts');
  const service = stack.use(await TestService.open({ workers: 1, tokenizer: qwen3Folder(), scenarios: [scenario] }));
  if (joins) await service.client.backends.join({ url: backend.url });
  return { service, backend, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}
