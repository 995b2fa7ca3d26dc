// What the fake backend says in the package test: it solves the scenario of the README of `millrace` and the sums of the clients' READMEs.

import { type Policy, renderCall, scriptedPolicy } from '@millrace/testkit';

export const policy: Policy = scriptedPolicy([
  {
    match: /sum of column/,
    turns: [renderCall('bash', { command: "awk -F, '{ sum += $2 } END { print sum }' data.csv" }), renderCall('finish', { answer: '42' })],
  },
  { match: /1 \+ 1/, turns: ['It is \\boxed{2}.'] },
  { match: /2 \+ 2/, turns: ['It is \\boxed{4}.'] },
]);
