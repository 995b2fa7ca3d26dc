// A real Prometheus loads the alert rules, scrapes a running service, and evaluates every rule and every query of the dashboard.

import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { chooseFreePort } from '@millrace/base/free-port';
import { makeTempFolder, qwen3Folder, TestService } from '@millrace/testkit';
import { z } from 'zod';

const root = join(import.meta.dirname, '../..');
const rules = join(root, 'deploy/prometheus/millrace.rules.yml');
const hasPrometheus = spawnSync('promtool', ['--version']).status === 0;
const skip = hasPrometheus ? false : 'there is no promtool; try: apt-get install prometheus';

const dashboard = z.object({ panels: z.array(z.object({ targets: z.array(z.object({ expr: z.string() })).optional() })) });

function readQueries(): string[] {
  const { panels } = dashboard.parse(JSON.parse(readFileSync(join(root, 'deploy/grafana/millrace.json'), 'utf8')));
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '5m')));
}

const ruleReply = z.object({
  data: z.object({
    groups: z.array(z.object({ rules: z.array(z.object({ name: z.string(), health: z.string(), lastError: z.string().optional() })) })),
  }),
});
const queryReply = z.object({
  status: z.string(),
  error: z.string().optional(),
  data: z.object({ result: z.array(z.unknown()) }).optional(),
});

describe('monitoring with a real Prometheus', { skip, timeout: 300_000 }, () => {
  test('promtool accepts the alert rules', () => {
    const output = execFileSync('promtool', ['check', 'rules', rules], { encoding: 'utf8' });
    assert.match(output, /SUCCESS: \d+ rules found/);
  });

  test('a Prometheus that scrapes a service evaluates every rule and every query of the dashboard', async () => {
    await using folder = await makeTempFolder('prometheus');
    await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder() });
    const port = await chooseFreePort('127.0.0.1');
    const config = {
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: [rules],
      scrape_configs: [{ job_name: 'millrace', static_configs: [{ targets: [new URL(service.url).host] }] }],
    };
    const path = join(folder.path, 'prometheus.yml');
    await writeFile(path, JSON.stringify(config)); // JSON is YAML
    const flags = [`--config.file=${path}`, `--storage.tsdb.path=${join(folder.path, 'data')}`, `--web.listen-address=127.0.0.1:${port}`];
    const prometheus = spawn('prometheus', flags, { stdio: 'ignore' });
    const exited = once(prometheus, 'exit');
    try {
      const ask = async (route: string) => await (await fetch(`http://127.0.0.1:${port}/api/v1/${route}`)).json();
      const query = async (text: string) => queryReply.parse(await ask(`query?query=${encodeURIComponent(text)}`));
      const isScraped = async () => ((await query('millrace_workers{alive="true"} == 1')).data?.result.length ?? 0) > 0;
      while (!(await isScraped().catch(() => false))) await pause(200); // it is starting
      for (;;) {
        const found = ruleReply.parse(await ask('rules')).data.groups.flatMap((group) => group.rules);
        assert.deepEqual(
          found.filter(({ lastError }) => lastError),
          [],
        );
        if (found.length > 10 && found.every(({ health }) => health === 'ok')) break;
        await pause(200);
      }
      for (const text of readQueries()) assert.deepEqual([text, (await query(text)).error], [text, undefined]);
    } finally {
      prometheus.kill();
      await exited;
    }
  });
});
