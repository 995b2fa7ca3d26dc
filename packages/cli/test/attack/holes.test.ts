// Each hole, put into a verifier on purpose, is found by the hacker that is named after it, and the same verifier without the hole holds.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { limits } from '@millrace/protocol';
import { ControlResults, probeBubblewrap, readConfig, systemClock } from '@millrace/server';
import { makeTempFolder, type TempFolder } from '@millrace/testkit/plain';
import { type Attacked, attackTask, findBaseline } from '../../src/attack/attack-task.ts';
import { hackers } from '../../src/attack/hackers/catalogue.ts';
import type { HackerTarget } from '../../src/attack/hackers/hacker.ts';
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
  ['exit-code', 'exit-zero', 'rewarded', /exit code/],
  ['exit-code', 'equal-to-everything', 'rewarded', /as JSON/],
  ['expected-in-reach', 'read-expected', 'rewarded', /expected values out of/],
  ['rounding', 'near-number', 'rewarded', /exactly/],
  ['quote', 'quote', 'escaped', /lowest reward/],
  ['chmod', 'break-its-judge', 'escaped', /control/],
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

  interface Attack {
    readonly scenario: string;
    readonly task: Readonly<Record<string, unknown>>;
    readonly name: string;
  }

  const attack = async ({ scenario, task, name }: Attack, hasControl = false) => {
    const named = hackers.find((one) => one.name === name);
    assert.ok(named);
    // A few variants are enough: the one that gets through is among them.
    const hacker = { ...named, plays: (target: HackerTarget) => named.plays(target).slice(0, 3) };
    const { signal } = new AbortController();
    const deps = hasControl ? plays.deps : { ...plays.deps, controls: new NoControl(systemClock) };
    const played = { scenario, task, limits: limits.parse({ evaluate_timeout_s: 60 }) };
    const baseline = await findBaseline(deps, played, signal);
    return { attacked: await attackTask(deps, played, { hacker, baseline, signal }), fix: hacker.fix };
  };

  for (const [hole, name, outcome, fix] of found) {
    test(`${name} gets through the hole ${hole}, and its fix is named; without the hole it is held`, async () => {
      const answer = hole === 'rounding' ? '123456789012' : '';
      const naive = await attack({ scenario: 'holes', task: { hole, answer }, name });
      assert.equal(naive.attacked?.outcome, outcome, naive.attacked?.why);
      assert.match(naive.fix, fix);
      const safe = await attack({ scenario: 'holes', task: { hole, answer, safe: true }, name });
      assert.equal(safe.attacked?.outcome, 'held', safe.attacked?.why);
    });
  }

  test('superscript gets through a Python verifier that trusts isdigit(), and is held by one that does not', async () => {
    const naive = await attack({ scenario: 'digits', task: { number: 63 }, name: 'superscript' });
    assert.equal(naive.attacked?.outcome, 'escaped');
    assert.match(naive.attacked?.why ?? '', /ValueError.*²/);
    assert.match(naive.fix, /isdigit/);
    assert.equal((await attack({ scenario: 'digits', task: { number: 63, safe: true }, name: 'superscript' })).attacked?.outcome, 'held');
  });

  test('a verifier that breaks on an answer is held by the control of the service', async () => {
    const held = await attack({ scenario: 'digits', task: { number: 63 }, name: 'superscript' }, true);
    assert.equal(held.attacked?.outcome, 'held', held.attacked?.why);
    assert.match(held.attacked?.why ?? '', /policy-failed: the verifier breaks on what the agent left/);
  });
});
