// The alert rules and the dashboard refer only to metrics and labels that a running service exposes.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fixedPolicy, openFakeBackend, qwen3Folder, TestService } from '@millrace/testkit';
import { z } from 'zod';

const root = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

/** The metrics of Prometheus itself that rules may use. */
const foreign = ['up'];

/** Words of the query language that are no metric and no label. */
const words = ['sum', 'rate', 'increase', 'histogram_quantile', 'predict_linear', 'and', 'or', 'unless'];

interface Selector {
  readonly metric: string;
  readonly labels: readonly string[];
}

/** The metrics of an expression with the labels that it matches or groups by. */
function readSelectors(expression: string): Selector[] {
  const grouped = [...expression.matchAll(/\b(?:by|without|on|ignoring)\s*\(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(','));
  const bare = expression.replace(/\b(?:by|without|on|ignoring)\s*\([^)]*\)/g, ' ').replace(/\[[^\]]*\]/g, ' ');
  const found = [...bare.matchAll(/([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{([^}]*)\})?/g)];
  const isName = (name: string) => !words.includes(name) && !/^e\d*$/.test(name);
  return found
    .filter(([, name = '']) => isName(name))
    .map(([, metric = '', matchers = '']) => ({
      metric,
      labels: [...matchers.matchAll(/([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)/g)]
        .map(([, label = '']) => label)
        .concat(grouped.map((name) => name.trim())),
    }));
}

const dashboard = z.object({
  panels: z.array(z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })).optional() })),
});

function readExpressions(): { readonly where: string; readonly expression: string }[] {
  const rules = read('deploy/prometheus/millrace.rules.yml')
    .split(/^ {6}- alert: /m)
    .slice(1);
  const panels = dashboard.parse(JSON.parse(read('deploy/grafana/millrace.json'))).panels;
  return [
    ...rules.map((rule) => ({ where: rule.split('\n')[0] ?? '', expression: /expr: (?:>-\n)?([\s\S]*?)\n {8}\w+:/.exec(rule)?.[1] ?? '' })),
    ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ where: title, expression: expr }))),
  ];
}

/** Each metric with the labels of its samples. */
function readExposed(text: string): Map<string, Set<string>> {
  const exposed = new Map<string, Set<string>>();
  for (const [, name = '', type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm))
    for (const suffix of type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']) exposed.set(`${name}${suffix}`, new Set());
  for (const [, name = '', labels = ''] of text.matchAll(/^([a-z_]+)(?:\{(.*)\})? \S+$/gm))
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) exposed.get(name)?.add(label);
  return exposed;
}

/** After a batch and a few rollouts, one of which fails, so that nearly every metric has samples. */
async function readMetrics(): Promise<string> {
  await using backend = await openFakeBackend({ policy: fixedPolicy({ turns: 1, tokensPerTurn: 32 }) });
  await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder(), pipeline: { rejudgeShare: 1 } });
  const { client } = service;
  await client.backends.join({ url: backend.url });
  const task = { question: '1 + 1 = ?', answer: '2' };
  await Array.fromAsync(await client.run([{ scenario: 'math', task }]));
  await client.batches.create({ id: 'b', scenario: 'math', group_size: 2, target: 1, tasks: [task], max_groups: 1 });
  await client.batches.wait('b');
  await client.get('none').catch(() => {}); // a request that fails is counted too
  for (;;) {
    const text = await (await fetch(`${service.url}/metrics`)).text();
    if (/^millrace_batches_ended_total\{/m.test(text) && /^millrace_backend_calls_total\{/m.test(text)) return text;
  }
}

test('every metric and label of the alert rules and the dashboard is exposed by a running service', { timeout: 120_000 }, async () => {
  const exposed = readExposed(await readMetrics());
  const expressions = readExpressions();
  assert.ok(expressions.length > 30, `${expressions.length} expressions were found`);
  const wrong = expressions.flatMap(({ where, expression }) => {
    const selectors = readSelectors(expression).filter(({ metric }) => !foreign.includes(metric));
    if (selectors.length === 0 && !foreign.some((name) => expression.includes(name))) return [`${where}: no metric in ${expression}`];
    return selectors.flatMap(({ metric, labels }) => {
      const known = exposed.get(metric);
      if (!known) return [`${where}: there is no metric ${metric}`];
      // A counter that has never counted has no labels yet.
      return known.size === 0
        ? []
        : labels.filter((label) => !known.has(label)).map((label) => `${where}: ${metric} has no label ${label}`);
    });
  });
  assert.deepEqual(wrong, []);
});

test('an expression is taken apart into its metrics and labels', () => {
  const expression = 'sum by (a) (rate(x_total{b="1", c!~"2|3"}[5m])) / y > 5e9 and predict_linear(z{d="e"}[6h], 24 * 3600) < 0';
  assert.deepEqual(readSelectors(expression), [
    { metric: 'x_total', labels: ['b', 'c', 'a'] },
    { metric: 'y', labels: ['a'] },
    { metric: 'z', labels: ['d', 'a'] },
  ]);
});
