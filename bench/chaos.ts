// `npm run chaos [-- --kills 1000 --rollouts 2000]`: the crash test at any length.

import { parseArgs } from 'node:util';
import { runChaos } from '@millrace/testkit';

const { values } = parseArgs({ options: { kills: { type: 'string', default: '200' }, rollouts: { type: 'string', default: '1000' } } });
const report = await runChaos({
  kills: Number(values.kills),
  rollouts: Number(values.rollouts),
  onProgress: (line) => console.error(line),
});
console.log(JSON.stringify(report, undefined, 2));
const { lost, doubled, wrong, leftSandboxes, leftProcesses } = report;
process.exitCode = lost.length + doubled.length + wrong.length + leftSandboxes + leftProcesses === 0 ? 0 : 1;
