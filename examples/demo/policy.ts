// The demo's policy, by which the fake backend speaks: it knows the script of each task, and has a bad day with the last two
// siblings of every group.

import { type Policy, scriptedPolicy } from '@millrace/testkit';
import { tasks } from './tasks.ts';

const literally = (text: string) => new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
const good = scriptedPolicy(tasks.map(({ match, turns }) => ({ match: literally(match), turns })));
const bad = scriptedPolicy(tasks.map(({ match, wrong }) => ({ match: literally(match), turns: wrong })));

export const policy: Policy = (input) => (/-[45]$/.test(input.sessionId ?? '') ? bad(input) : good(input));
