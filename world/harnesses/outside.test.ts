// Agents that run elsewhere, with the packages that people use, at a gateway: their turns go back with their own ids.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { type FakeBackend, findWrongToken, openFakeBackend, qwen3Folder, TestService } from '@millrace/testkit';
import { z } from 'zod';
import { openClientPython } from '../engines/client-python.ts';
import { findForeignPrompts } from './foreign-prompts.ts';
import { harnessPolicy } from './scripted-policy.ts';

const opened = z.object({ id: z.string(), key: z.string(), base_url: z.string() });
const ended = z.looseObject({
  reward: z.number().nullable(),
  result: z.looseObject({
    turns: z.int(),
    score: z.looseObject({
      gateway: z.looseObject({ exact_share: z.number(), branches: z.array(z.looseObject({ role: z.string(), reason: z.string() })) }),
    }),
  }),
});

describe('openai-agents at a gateway', { timeout: 600_000 }, () => {
  let python: string;
  let backend: FakeBackend;
  let service: TestService;
  before(async () => {
    python = await openClientPython(['openai-agents==0.24.0']);
    backend = await openFakeBackend({ policy: harnessPolicy, keep: 1000 });
    service = await TestService.open({ workers: 1, tokenizer: qwen3Folder() });
    await service.client.backends.join({ url: backend.url });
  });
  after(async () => {
    await service?.[Symbol.asyncDispose]();
    await backend?.[Symbol.asyncDispose]();
  });

  for (const api of ['responses', 'chat'])
    test(`over ${api}, streamed and not, every sampled token goes back with its own id`, async () => {
      const { id, key, base_url } = opened.parse(await post(`${service.url}/v1/gateways`, {}));
      const program = join(import.meta.dirname, 'openai_agents.py');
      const { stdout } = await promisify(execFile)(python, [program, base_url, key, api], { timeout: 120_000 });
      assert.equal(stdout, 'All done.\nAll done.\n');
      const { reward, result } = ended.parse(await post(`${service.url}/v1/gateways/${id}/reward`, { reward: 1 }));
      const { exact_share, branches } = result.score.gateway;
      assert.deepEqual([reward, result.turns, exact_share], [1, 8, 1]);
      // The second run asks what the first one had asked.
      assert.deepEqual(
        branches.map(({ role, reason }) => [role, reason]),
        [
          ['main', 'opening'],
          ['main', 're-ask'],
        ],
      );
      const trajectory = await service.client.trajectory(id);
      assert.deepEqual(findWrongToken(trajectory), []);
      assert.deepEqual(findForeignPrompts(trajectory, backend), []);
    });
});

async function post(url: string, body: unknown): Promise<unknown> {
  const headers = { 'content-type': 'application/json' };
  return await (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).json();
}
