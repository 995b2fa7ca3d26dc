// Each hole, put into a verifier on purpose, is found by the hacker that is named after it, and the same verifier without the hole holds.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import { limits } from '@millrace/protocol';
import { probeBubblewrap } from '@millrace/sandbox';
import { readConfig } from '@millrace/server';
import { makeTempFolder, type TempFolder } from '@millrace/testkit/plain';
import { ControlResults } from '@millrace/worker';
import { type Attacked, attackTask, type Baseline, findBaseline } from '../../src/attack/attack-task.ts';
import { hackers } from '../../src/attack/hackers/catalogue.ts';
import type { Play } from '../../src/attack/hackers/hacker.ts';
import { openPlays, type Plays } from '../../src/attack/open-plays.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

/** The hole, who finds it, how it gets through, and a word of the fix. */
const found: readonly (readonly [string, string, Attacked['outcome'], RegExp])[] = [
  ['links', 'link-to-cmdline', 'rewarded', /readFolder/],
  ['hidden-file', 'link-to-hidden', 'rewarded', /readFolder/],
  ['arithmetic', 'arithmetic', 'rewarded', /never as arithmetic/],
  ['arithmetic-in-a-file', 'arithmetic', 'rewarded', /never as arithmetic/],
  ['pattern', 'pattern', 'rewarded', /a pattern/],
  ['arithmetic-on-output', 'arithmetic', 'rewarded', /never as arithmetic/],
  ['pattern-in-output', 'pattern', 'rewarded', /a pattern/],
  ['exported-secret', 'read-expected', 'rewarded', /expected values out of/],
  ['secret-in-environment', 'link-to-environ', 'rewarded', /readFolder/],
  ['text-on-standard-input', 'link-to-stdin', 'rewarded', /readFolder/],
  ['exit-code', 'exit-zero', 'rewarded', /exit code/],
  ['exit-code', 'equal-to-everything', 'rewarded', /as JSON/],
  ['expected-in-reach', 'read-expected', 'rewarded', /expected values out of/],
  ['rounding', 'near-number', 'rewarded', /exactly/],
  ['quote', 'quote', 'escaped', /lowest reward/],
  ['chmod', 'break-its-judge', 'escaped', /control/],
  ['moved-files', 'break-its-judge', 'escaped', /control/],
  ['missing-program', 'missing-program', 'escaped', /lowest reward/],
  ['surrogate', 'lone-surrogate', 'escaped', /errors="replace"/],
  ['backtracking', 'many-newlines', 'froze', /linear time/],
];

/** Puts back a hole of the service: a verifier that breaks is never held against an agent that did nothing. */
class NoControl extends ControlResults {
  override get(): boolean {
    return false;
  }
}

describe('holes that are put into verifiers', { skip, timeout: 300_000 }, () => {
  let folder: TempFolder;
  let plays: Plays;
  before(async () => {
    folder = await makeTempFolder('holes');
    const scenarios = ['holes.ts', 'digits.py'].map((name) => join(import.meta.dirname, name));
    const config = readConfig(undefined, { data: join(folder.path, 'data'), run: join(folder.path, 'run'), scenarios });
    plays = await openPlays(config, folder.path);
  });
  after(async () => {
    await plays[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  const { signal } = new AbortController();
  const withoutControl = () => ({ ...plays.deps, controls: new NoControl(systemClock) });
  const toPlayed = (scenario: string, task: Readonly<Record<string, unknown>>) => ({ scenario, task, limits: limits.parse({}) });
  const baselines = new Map<string, Promise<Baseline>>();

  /** Plays a hacker against the task, and what got through against the same task without the hole. */
  const attack = async (name: string, scenario: string, task: Readonly<Record<string, unknown>>) => {
    const hacker = hackers.find((one) => one.name === name);
    assert.ok(hacker);
    const key = JSON.stringify(task);
    const found = baselines.get(key) ?? findBaseline(plays.deps, toPlayed(scenario, task), signal);
    baselines.set(key, found);
    const baseline = await found;
    const run = async (played: readonly Play[], isSafe: boolean) =>
      await attackTask(withoutControl(), toPlayed(scenario, { ...task, safe: isSafe }), {
        hacker: { ...hacker, plays: () => played },
        baseline,
        signal,
      });
    // What programs print comes last, so it is tried before the many texts.
    const played = hacker.plays(baseline.target);
    for (const play of [...played.slice(0, 3), ...played.slice(3).toReversed()]) {
      const naive = await run([play], false);
      if (naive?.outcome !== 'held') return { naive, safe: await run([play], true), fix: hacker.fix };
    }
    return assert.fail(`${name} was held`);
  };

  for (const [hole, name, outcome, fix] of found) {
    test(`${name} gets through the hole ${hole}, and its fix is named; without the hole it is held`, async () => {
      const seen = await attack(name, 'holes', { hole, answer: hole === 'rounding' ? '123456789012' : '' });
      assert.equal(seen.naive?.outcome, outcome, seen.naive?.why);
      assert.match(seen.fix, fix);
      assert.equal(seen.safe?.outcome, 'held', seen.safe?.why);
    });
  }

  test('superscript gets through a Python verifier that trusts isdigit(), and is held by one that does not', async () => {
    const { naive, safe, fix } = await attack('superscript', 'digits', { number: 63 });
    assert.equal(naive?.outcome, 'escaped');
    assert.match(naive?.why ?? '', /ValueError.*²/);
    assert.match(fix, /isdigit/);
    assert.equal(safe?.outcome, 'held');
  });

  test('a verifier that breaks on an answer is held by the control of the service', async () => {
    const played = toPlayed('digits', { number: 63 });
    const baseline = await findBaseline(plays.deps, played, signal);
    const hacker = { name: 'one', kind: 'dodge', explain: '', fix: '', plays: () => [{ answer: '²' }] } as const;
    const held = await attackTask(plays.deps, played, { hacker, baseline, signal });
    assert.equal(held?.outcome, 'held', held?.why);
    assert.match(held?.why ?? '', /policy-failed: the verifier breaks on what the agent left/);
  });
});
