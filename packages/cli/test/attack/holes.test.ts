// Each hole, put into a verifier on purpose, is found by the hacker that is named after it, and the same verifier without the hole holds.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { limits } from '@millrace/protocol';
import { probeBubblewrap, readConfig } from '@millrace/server';
import { makeTempFolder, type TempFolder } from '@millrace/testkit/plain';
import { type Attacked, attackTask, findBaseline } from '../../src/attack/attack-task.ts';
import { hackers } from '../../src/attack/hackers/catalogue.ts';
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

  const attack = async (scenario: string, task: Record<string, unknown>, name: string) => {
    const hacker = hackers.find((one) => one.name === name);
    assert.ok(hacker);
    const { signal } = new AbortController();
    const played = { scenario, task, limits: limits.parse({ evaluate_timeout_s: 60 }) };
    const baseline = await findBaseline(plays.deps, played, signal);
    return { attacked: await attackTask(plays.deps, played, { hacker, baseline, signal }), fix: hacker.fix };
  };

  for (const [hole, name, outcome, fix] of found) {
    test(`${name} gets through the hole ${hole}, and its fix is named; without the hole it is held`, async () => {
      const answer = hole === 'rounding' ? '123456789012' : '';
      const naive = await attack('holes', { hole, answer }, name);
      assert.equal(naive.attacked?.outcome, outcome, naive.attacked?.why);
      assert.match(naive.fix, fix);
      const safe = await attack('holes', { hole, answer, safe: true }, name);
      assert.equal(safe.attacked?.outcome, 'held', safe.attacked?.why);
    });
  }

  test('superscript gets through a Python verifier that trusts isdigit(), and is held by one that does not', async () => {
    const naive = await attack('digits', { number: 63 }, 'superscript');
    assert.equal(naive.attacked?.outcome, 'escaped');
    assert.match(naive.attacked?.why ?? '', /ValueError.*²/);
    assert.match(naive.fix, /isdigit/);
    assert.equal((await attack('digits', { number: 63, safe: true }, 'superscript')).attacked?.outcome, 'held');
  });
});
