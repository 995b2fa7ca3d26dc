// What the fake backend says in the package test: it solves the scenario of the README of `millrace`, and the sums of the clients' READMEs for
// every second sibling of a task, so that each group is informative.

import { type Policy, renderCall, scriptedPolicy } from '@millrace/testkit';

const columns = scriptedPolicy([
  {
    match: /sum of column/,
    turns: [renderCall('bash', { command: "awk -F, '{ sum += $2 } END { print sum }' data.csv" }), renderCall('finish', { answer: '42' })],
  },
]);
const siblings = new Map<string, string[]>();

export const policy: Policy = (input) => {
  const [question, number] = /(\d) \+ \d/.exec(input.opening()) ?? [];
  if (question === undefined) return columns(input);
  const { sessionId = '' } = input;
  const known = siblings.get(question) ?? [];
  if (!known.includes(sessionId)) siblings.set(question, [...known, sessionId]);
  const isSolved = (siblings.get(question) ?? []).indexOf(sessionId) % 2 === 0;
  return { text: `It is \\boxed{${isSolved ? 2 * Number(number) : 0}}.` };
};
