// examples/web-search, as a user would run it: its server, its configuration and its tasks, through a worker.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { renderCall } from '@millrace/testkit/plain';
import { says, WorkerBed } from '../pipeline/worker-bed.ts';

const example = new URL('../../../../examples/web-search/', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, example), 'utf8');

async function openSearch() {
  const argv = [fileURLToPath(new URL('server.ts', example)), fileURLToPath(new URL('documents.jsonl', example))];
  const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [url] = await once(createInterface(child.stdout), 'line');
  return {
    url: String(url),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

test('a stem task is solved with what the search tool returns, and only with it', async () => {
  await using search = await openSearch();
  const { tools } = JSON.parse(read('millrace.json'));
  tools.http.web_search.url = search.url;
  const [height, density] = read('tasks.jsonl')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const policy = says(renderCall('web_search', { query: 'Mount Erebor height survey', max_results: 1 }), '\\boxed{4382 m}');
  await using bed = await WorkerBed.open({ policy, tools });
  const [right, wrong] = await bed.submitAll({ id: 'height', ...height }, { id: 'density', ...density });
  await bed.startWorker();
  assert.equal((await bed.ended(right)).result?.reward, 1);
  assert.equal((await bed.ended(wrong)).result?.reward, 0);
  const { segments = [] } = (await bed.store.trajectory(right)) ?? {};
  const [found] = segments.flatMap(({ messages }) => messages.filter(({ role }) => role === 'tool').map(({ content }) => content));
  assert.match(found ?? '', /^1\. Mount Erebor survey\nhttps:\/\/survey\.example\/erebor\n.*4382 m/);
});
