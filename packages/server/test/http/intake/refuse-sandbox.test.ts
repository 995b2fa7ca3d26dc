// Tasks whose sandbox cannot be opened are refused when they are submitted, with the field and what to do.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { sandboxConfig } from '@millrace/sandbox';
import { loadScenarios } from '@millrace/scenarios';
import type { z } from 'zod';
import { errorOf, openFloor } from '../floor.ts';

const shell = { instruction: 'x', check: '[ -f /workspace/x ]' };
const code = { question: 'x', tests: [{ input: '', output: '1' }] };
const useApptainer = /bubblewrap cannot run images: start the service with --driver apptainer/;
const image = 'docker://python:3.12';

const refusals: readonly {
  readonly claim: string;
  readonly sandbox?: z.input<typeof sandboxConfig>;
  readonly scenario: string;
  readonly task: object;
  readonly message: RegExp;
}[] = [
  {
    claim: 'an image under bubblewrap',
    scenario: 'shell',
    task: { ...shell, image },
    message: new RegExp(`^rollouts\\[0\\]\\.task\\.image: .*${useApptainer.source}`),
  },
  {
    claim: 'an image that only judging needs, under bubblewrap',
    scenario: 'code',
    task: { ...code, image },
    message: new RegExp(`^rollouts\\[0\\]\\.task\\.image: .*${useApptainer.source}`),
  },
  {
    claim: 'no image under Apptainer, where the configuration has none either',
    sandbox: { driver: 'apptainer' },
    scenario: 'shell',
    task: shell,
    message: /^rollouts\[0\]\.task: the task names no image, and sandbox\.image is not set/,
  },
  {
    claim: 'an image file that does not exist',
    sandbox: { driver: 'apptainer' },
    scenario: 'shell',
    task: { ...shell, image: '/no/such.sif' },
    message: /^rollouts\[0\]\.task\.image: there is no image \/no\/such\.sif/,
  },
  {
    claim: 'a limit that no sandbox can have',
    sandbox: { driver: 'apptainer' },
    scenario: 'swe',
    task: { instance_id: 'a', repo: 'a/b', base_commit: 'c', problem_statement: 'p', image, test_command: 'true', memory_mib: 300 },
    message: /memory_mib/,
  },
];

for (const { claim, sandbox = {}, scenario, task, message } of refusals)
  test(`refused at submission: ${claim}`, async () => {
    await using floor = await openFloor({ sandbox, scenarios: await loadScenarios([]) });
    const reply = await floor.call('POST', '/v1/rollouts', { rollouts: [{ scenario, task }] });
    const error = errorOf(reply);
    assert.deepEqual([reply.status, error.code], [400, 'task-invalid'], JSON.stringify(error));
    assert.match(error.message, message);
  });

test('batches and evaluations refuse such tasks too, each by its number', async () => {
  await using floor = await openFloor({ scenarios: await loadScenarios([]) });
  const tasks = [shell, { ...shell, image }, { ...shell, image }];
  for (const path of ['/v1/batches', '/v1/evaluations']) {
    const reply = await floor.call('POST', path, {
      scenario: 'shell',
      tasks,
      ...(path === '/v1/batches' ? { target: 1, group_size: 2 } : { n: 1 }),
    });
    assert.match(errorOf(reply).message, /^tasks\[1\]\.image: .*; tasks\[2\]\.image: /);
  }
});

test('a task that another live machine can run is accepted', async () => {
  await using floor = await openFloor({ scenarios: await loadScenarios([]) });
  const sandboxes = { driver: 'apptainer', default_image: false, network: 'none', host_network: false, user_namespaces: false } as const;
  await floor.worker.register();
  await floor.worker.report({ machine: { id: 'm-1', name: 'node-1', labels: {}, cpus: 1, memory_bytes: 1, sandboxes } });
  const submit = (task: object) => floor.call('POST', '/v1/rollouts', { rollouts: [{ scenario: 'shell', task }] });
  assert.equal((await submit({ ...shell, image })).status, 200);
});
