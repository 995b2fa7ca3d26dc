// The scenario and the policy of the chaos run. The verifier hangs while a file exists, and ignores its signal. The text of every turn
// is a function of the rollout's number.

import { appendFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Scenario } from '@millrace/scenarios';
import { z } from 'zod';
import { type Policy, renderCall } from '../../fake-backend/policy.ts';

const task = z.strictObject({ number: z.int() });

/** Where the verifiers look; set for the processes of the service. */
export const controlVariable = 'MILLRACE_CHAOS_FOLDER';
/** While it exists, verifiers hang. */
export const hangFile = 'verifiers-hang';
/** The number of each rollout whose verifier hung, one a line. */
export const hungFile = 'verifiers-hung';

export const scenario: Scenario<z.infer<typeof task>> = {
  name: 'chaos-play',
  task,
  async init({ task: { number } }) {
    return { messages: [{ role: 'user', content: `This is number ${number}.` }], tools: ['finish'] };
  },
  async evaluate({ task: { number }, end }) {
    const folder = process.env[controlVariable];
    if (folder !== undefined && existsSync(join(folder, hangFile))) {
      appendFileSync(join(folder, hungFile), `${number}\n`);
      await new Promise(() => {});
    }
    return { reward: end.answer === `${number}` ? 1 : 0 };
  },
};

/** In a real sandbox: leaves processes behind that must be gone afterwards. */
export function makeShellTask(number: number): Record<string, unknown> {
  return {
    instruction: `Copy the file secret to copy. This is number ${number}.`,
    setup: `echo ${number} > secret`,
    check: `grep -qx ${number} copy`,
  };
}

const shellTurns = [
  renderCall('bash', { command: 'sleep 300 & setsid sleep 300 & ls' }),
  renderCall('bash', { command: 'cat secret > copy' }),
  renderCall('finish', {}),
];

export const policy: Policy = ({ opening, turn }) => {
  const text = opening();
  const number = Number(/number (\d+)\./.exec(text)?.[1]);
  if (text.includes('Copy the file secret')) return { text: shellTurns[Math.min(turn, shellTurns.length - 1)] ?? '' };
  const thought = `Number ${number} is in turn ${turn + 1} and thinks ${number * 7919 + turn} times before it acts. `;
  return { text: thought.repeat(1 + (number % 3)) + (turn === 0 ? renderCall('look', {}) : renderCall('finish', { answer: `${number}` })) };
};
