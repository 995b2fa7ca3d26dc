// The scenario and the policy of the fault test, without a sandbox. The text of each turn is a function of the rollout's number, so that
// every token can be checked.

import type { Scenario } from '@millrace/scenarios';
import { z } from 'zod';
import { type Policy, renderCall } from '../fake-backend/policy.ts';

const task = z.strictObject({ number: z.int() });

export const scenario: Scenario<z.infer<typeof task>> = {
  name: 'play',
  task,
  async init({ task: { number } }) {
    return { messages: [{ role: 'user', content: `This is number ${number}.` }], tools: ['finish'] };
  },
  async evaluate({ task: { number }, end }) {
    return { reward: end.answer === `${number}` ? 1 : 0 };
  },
};

export const playTurns = 3;

/** All but the last turn call a tool that does not exist and get an error. Lengths differ, so that some are always in mid-turn. */
export function playTurn(number: number, turn: number): string {
  const thought = `Number ${number} is in turn ${turn + 1} and thinks ${number * 7919 + turn} times before it acts. `;
  return (
    thought.repeat(1 + (number % 5)) +
    (turn + 1 < playTurns ? renderCall(`tool_${turn}`, { number }) : renderCall('finish', { answer: `${number}` }))
  );
}

export const policy: Policy = ({ opening, turn }) => ({ text: playTurn(Number(/number (\d+)\./.exec(opening())?.[1]), turn) });
