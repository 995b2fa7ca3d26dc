// The filters of `millrace ls` that the service does not have: by reward, blame, stop reason and text. They look at rollouts as they are
// listed.

import { blames, type RolloutView, stopReasons } from '@millrace/protocol';
import { type Arguments, type Option, UsageError } from '../command/command.ts';

export const filterOptions = {
  reward: {
    type: 'string',
    value: 'RANGE',
    describe: 'Only rollouts with such a reward: `1`, `0.5..1`, `..0`, `0.5..`, or `none` for those without one.',
  },
  blame: { type: 'string', value: 'WHO', describe: `Only rollouts with a failure blamed on: ${blames.join(', ')}.` },
  'stop-reason': { type: 'string', value: 'REASON', describe: `Only rollouts whose agent stopped because of: ${stopReasons.join(', ')}.` },
  text: { type: 'string', value: 'TEXT', describe: 'Only rollouts with this text in what --json shows: ids, messages, scores, metadata.' },
} as const satisfies Record<string, Option>;

/** Whether a rollout passes all filters of the command line. Absent without any. */
export function toListFilter(args: Arguments): ((view: RolloutView) => boolean) | undefined {
  const reward = args.text('reward');
  const isWithin = reward === undefined ? undefined : parseRange(reward);
  const blame = args.choice('blame', blames);
  const reason = args.choice('stop-reason', stopReasons);
  const text = args.text('text')?.toLowerCase();
  const tests: ((view: RolloutView) => boolean)[] = [];
  if (isWithin) tests.push((view) => isWithin(view.reward));
  if (blame !== undefined) tests.push(({ failure }) => failure?.blame === blame);
  if (reason !== undefined) tests.push(({ result }) => result?.stop_reason === reason);
  if (text !== undefined) tests.push((view) => JSON.stringify(view).toLowerCase().includes(text));
  return tests.length === 0 ? undefined : (view) => tests.every((test) => test(view));
}

const number = /^-?(\d+(\.\d*)?|\.\d+)$/;

function parseRange(text: string): (reward: number | null) => boolean {
  if (text === 'none') return (reward) => reward === null;
  const at = text.indexOf('..');
  const [low, high] = at < 0 ? [text, text] : [text.slice(0, at), text.slice(at + 2)];
  if (low + high === '' || ![low, high].every((end) => end === '' || number.test(end)))
    throw new UsageError(`--reward ${text} is not a range such as 1, 0.5..1, ..0 or none`);
  const [least, most] = [low === '' ? Number.NEGATIVE_INFINITY : Number(low), high === '' ? Number.POSITIVE_INFINITY : Number(high)];
  return (reward) => reward !== null && reward >= least && reward <= most;
}
