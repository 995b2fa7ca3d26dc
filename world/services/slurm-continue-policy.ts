// A policy whose every turn checks the file and the variable that the turns before it left, and says `BAD` if one of them is not there.

import { type Policy, renderCall } from '@millrace/testkit';

export const longTurns = 12;

const step = (turn: number) =>
  renderCall('bash', {
    command: `((n += 1)); echo ${turn} >>steps; [[ $n == ${turn + 1} && $(wc -l <steps) == ${turn + 1} && $(tail -1 steps) == ${turn} ]] && echo ok || echo BAD`,
  });

export const policy: Policy = ({ turn }) => ({ text: turn < longTurns ? step(turn) : renderCall('finish', {}) });
