// What `millrace serve` says to people: why it does not start, what runs, and what to do next. Everything here is pure.

import { resolve } from 'node:path';
import type { Check, ServiceConfig } from '@millrace/server';
import { hidePassword, isPostgresAddress } from '@millrace/store';
import { type Paint, padEnd, toCount } from '../terminal/text.ts';

export function renderRefusal(failed: readonly Check[], paint: Paint): string {
  const names = Math.max(...failed.map(({ name }) => name.length)) + 2;
  const lines = failed.flatMap((check) => [
    `  ${paint('red', '✖')} ${padEnd(check.name, names)}${check.seen}`,
    ...(check.level === 'ok' ? [] : [`    ${' '.repeat(names)}${paint('cyan', `→ ${check.remedy}`)}`]),
  ]);
  return `${['millrace: cannot start:', ...lines].join('\n')}\n`;
}

/** Said before the first worker is ready, which takes seconds with a large vocabulary. */
export function renderStarting(workers: number, paint: Paint): string {
  return paint('dim', `Starting ${toCount(workers)} ${workers === 1 ? 'worker' : 'workers'} …`);
}

interface Banner {
  readonly url: string;
  readonly config: ServiceConfig;
  readonly workers: number;
  /** Addresses of the backends that have joined. */
  readonly backends: readonly string[];
  /** Rollouts that wait from an earlier run. */
  readonly queued: number;
}

export function renderBanner({ url, config, workers, backends, queued }: Banner, paint: Paint): string {
  const rows: [string, string][] = [
    ['listening', paint('bold', url)],
    ['model', config.model.tokenizer === undefined ? 'none: this service starts no workers' : describeModel(config)],
    ['sandboxes', config.sandbox.driver],
    ['scenarios', ['math', 'shell', ...config.scenarios].join(', ')],
    ['store', describeStore(config)],
    ['workers', workers === 0 ? 'none; millrace worker adds one' : toCount(workers)],
    ['backends', backends.length === 0 ? 'none yet' : backends.join(', ')],
    ...(queued > 0 ? [['queue', `${toCount(queued)} rollouts wait from an earlier run`] satisfies [string, string]] : []),
  ];
  const steps = [...(backends.length === 0 ? ['millrace backend add http://gpu-0:8000'] : []), 'millrace submit tasks.jsonl'];
  const exports = [
    ...(url === 'http://127.0.0.1:8007' ? [] : [`export MILLRACE_URL=${url}`]),
    ...(config.http.keys.length === 0 ? [] : ['export MILLRACE_KEY=…']),
  ];
  return [
    '',
    ...rows.map(([name, value]) => `  ${paint('green', '✔')} ${padEnd(name, 11)}${value}`),
    '',
    '  Next, in another terminal:',
    ...[...exports, ...steps, 'millrace watch'].map((line) => `    ${paint('cyan', line)}`),
    '',
    `  ${paint('dim', 'Ctrl-C finishes what runs, then stops.')}`,
    '',
    '',
  ].join('\n');
}

function describeModel({ model }: ServiceConfig): string {
  return `${model.tokenizer} (tool calls: ${model.toolParser})`;
}

interface Draining {
  readonly held: number;
  readonly leftMs: number;
  readonly isHandingBack: boolean;
}

/** One line of the count-down, redrawn every second. */
export function renderDraining({ held, leftMs, isHandingBack }: Draining): string {
  if (held === 0) return 'stopping the workers …';
  if (isHandingBack) return `handing ${toRollouts(held)} back to the queue …`;
  const seconds = Math.max(0, Math.ceil(leftMs / 1000));
  return `finishing ${toRollouts(held)}; in ${seconds} s the rest goes back to the queue. Ctrl-C again: now`;
}

export function renderStopped(queued: number): string {
  return queued === 0
    ? 'Stopped. No rollout is left in the queue.'
    : `Stopped. ${toRollouts(queued)} ${queued === 1 ? 'waits' : 'wait'} in the queue; the next millrace serve continues with ${queued === 1 ? 'it' : 'them'}.`;
}

function toRollouts(count: number): string {
  return `${toCount(count)} ${count === 1 ? 'rollout' : 'rollouts'}`;
}

function describeStore(config: ServiceConfig): string {
  const { address } = config.store;
  if (address === undefined) return resolve(config.data);
  return isPostgresAddress(address) ? hidePassword(address) : resolve(address);
}
