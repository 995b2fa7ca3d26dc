// The files in which the test script of a Harbor task reports: reward.json, and reward.txt if there is none. Only a plain file with a finite
// number counts.

import { z } from 'zod';

export const rewardFolder = '/logs/verifier';
export const rewardNames = ['reward.json', 'reward.txt'] as const;
const maxRewardBytes = 1 << 16;

export type RewardReport =
  | { readonly kind: 'reward'; readonly reward: number; readonly parts: Readonly<Record<string, number>> }
  | { readonly kind: 'none'; readonly reason: string };

/** `archive` is the folder as `readFolder` packed it. */
export function readReward(archive: Buffer): RewardReport {
  const entries = listEntries(archive);
  const found = rewardNames.flatMap((name) => entries.find((entry) => entry.name === `./${name}` || entry.name === `./${name}/`) ?? [])[0];
  if (found === undefined) return { kind: 'none', reason: 'tests/test.sh wrote neither reward.json nor reward.txt' };
  const name = found.name.replace(/^\.\/|\/$/g, '');
  if (found.type !== '0') return { kind: 'none', reason: `${name} is not a plain file` };
  if (found.content.length > maxRewardBytes) return { kind: 'none', reason: `${name} has ${found.content.length} bytes` };
  const text = found.content.toString('utf8').trim();
  if (text === '') return { kind: 'none', reason: `${name} is empty` };
  return name === 'reward.json' ? parseJson(text) : parseText(text);
}

function parseText(text: string): RewardReport {
  const reward = /^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
  if (Number.isFinite(reward)) return { kind: 'reward', reward, parts: {} };
  return { kind: 'none', reason: `reward.txt is not a number: ${JSON.stringify(text.slice(0, 100))}` };
}

const rewards = z.union([z.number(), z.record(z.string(), z.union([z.number(), z.boolean().transform(Number)]))]);

/** A number, or an object of numbers: `reward`, or its only number, is the reward, and the others are its parts. */
function parseJson(text: string): RewardReport {
  const fail = (why: string): RewardReport => ({ kind: 'none', reason: `reward.json ${why}: ${JSON.stringify(text.slice(0, 100))}` });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return fail('is not JSON');
  }
  const parsed = rewards.safeParse(value);
  if (!parsed.success) return fail('is not a finite number, or an object of them');
  if (typeof parsed.data === 'number') return { kind: 'reward', reward: parsed.data, parts: {} };
  const { reward, ...parts } = parsed.data;
  if (reward !== undefined) return { kind: 'reward', reward, parts };
  const [only, ...others] = Object.values(parts);
  if (only === undefined || others.length > 0) return fail('has no `reward`');
  return { kind: 'reward', reward: only, parts };
}

interface Entry {
  readonly name: string;
  readonly type: string;
  readonly content: Buffer;
}

const blockBytes = 512;

/** The executor made the archive. Entries with long names, which have more than one header, are of no interest. */
function listEntries(archive: Buffer): Entry[] {
  const entries: Entry[] = [];
  for (let at = 0; at + blockBytes <= archive.length; ) {
    const header = archive.subarray(at, at + blockBytes);
    const name = header.toString('utf8', 0, 100).replace(/\0.*$/s, '');
    if (name === '') break;
    const size = Number.parseInt(header.toString('latin1', 124, 136), 8) || 0;
    entries.push({ name, type: header.toString('latin1', 156, 157), content: archive.subarray(at + blockBytes, at + blockBytes + size) });
    at += blockBytes + Math.ceil(size / blockBytes) * blockBytes;
  }
  return entries;
}
