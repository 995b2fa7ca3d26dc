// The dashboard in a real browser, against a live service: every page, keys, keyboard, themes, accessibility, hostile output, a restart.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { viewPath } from '@millrace/server';
import { makeTempFolder } from '@millrace/testkit';
import type { Browser, Page } from 'playwright-core';
import { millrace, openIo } from '../../packages/cli/test/fake-io.ts';
import { openBrowser, skipBrowser, visit } from './browser.ts';
import { adminKey, type DashboardScene, fillScene, hostile, hostileText, long, openBranches, openScene, readKey, runAll } from './scene.ts';

const pages = [
  ['now', '.u-wrap'],
  ['rollouts', '.row .tag'],
  ['rollout/fix-1%3A0', '.message-tool'],
  ['rollout/fix-1%3A0?tab=tokens', '.tk'],
  ['rollout/fix-1%3A0?tab=time', '.events li'],
  ['rollout/fix-1%3A0?tab=verdict', '.facts'],
  ['rollout/fix-1%3A0?tab=raw', '.output'],
  ['rollout/several-agents?branch=2', '.branch-on'],
  ['scan?pattern=script', '.findings li'],
  ['group/fix-1', '.compared .message'],
  ['failures', '.failure'],
  ['training', '.u-wrap'],
  ['batches', '.table tbody tr'],
  ['batch/step-7', '.sibling'],
] as const;

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

describe('the dashboard', { skip: skipBrowser, timeout: 600_000 }, () => {
  let scene: DashboardScene;
  let browser: Browser;
  before(async () => {
    scene = await openScene();
    browser = await openBrowser();
    await fillScene(scene, { versions: 2, groups: 2 });
    await runAll(scene.client, [hostile, long]);
    await openBranches(scene);
  });
  after(async () => {
    await browser?.close();
    await scene?.[Symbol.asyncDispose]();
  });

  for (const theme of ['light', 'dark'] as const)
    test(`every page works in the ${theme} theme, and axe has no serious finding`, async () => {
      await using visited = await visit(browser, { url: scene.service.url, theme });
      for (const [address, ready] of pages) {
        await visited.go(address);
        await visited.page.waitForSelector(ready);
        assert.equal(await visited.page.evaluate('document.documentElement.dataset.theme'), theme);
        assert.deepEqual(await findBarriers(visited.page), [], address);
      }
    });

  test('without a key the page asks for one; a wrong one is refused, and none is in the address or outlives the tab', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${scene.service.url}/#/rollouts`);
    await page.getByLabel('Key').fill('wrong-key-of-16-characters');
    await page.getByRole('button', { name: 'Open' }).click();
    await page.getByRole('alert').waitFor();
    await page.getByLabel('Key').fill(readKey);
    await page.keyboard.press('Enter');
    await page.waitForSelector('.row .tag');
    assert.doesNotMatch(page.url(), new RegExp(readKey));
    const kept = await page.evaluate<string>('JSON.stringify({ ...localStorage }) + document.cookie');
    assert.equal(kept.includes(readKey), false);
    await context.close();
  });

  test('a key that may only read sees no buttons that change something', async () => {
    await using visited = await visit(browser, { url: scene.service.url, key: readKey });
    await visited.go('now');
    await visited.page.waitForSelector('.table tbody tr');
    assert.equal(await visited.page.getByRole('button', { name: /Pause|Drain|Cancel/ }).count(), 0);
    await visited.go('rollout/broken-setup-a');
    await visited.page.waitForSelector('.note-bad');
    assert.equal(await visited.page.getByRole('button', { name: /Try again/ }).count(), 0);
  });

  test('an admin pauses and resumes after a confirmation, and not without', async () => {
    await using visited = await visit(browser, { url: scene.service.url });
    const { page } = visited;
    await visited.go('now');
    await page.getByRole('button', { name: 'Pause …' }).click();
    await page.getByRole('button', { name: 'Leave it' }).click();
    assert.equal((await scene.client.policy.get()).state, 'running');
    await page.getByRole('button', { name: 'Pause …' }).click();
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.getByText('Sampling pauses.').waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Resume …' }).click();
    await page.getByRole('button', { name: 'Resume', exact: true }).click();
    await page.getByText('Sampling goes on.').waitFor();
    assert.equal((await scene.client.policy.get()).state, 'running');
  });

  test('what a trainer posted is shown over its steps, and at the token that it belongs to', async () => {
    await using visited = await visit(browser, { url: scene.service.url });
    await visited.go('training');
    const trainer = visited.page.getByRole('region', { name: 'Trainer' });
    await trainer.getByRole('img', { name: /Mismatch of logprobs over steps.*gpu-0/ }).waitFor();
    assert.match((await trainer.getByRole('row', { name: /gpu-0/ }).textContent()) ?? '', /gpu-0/);
    await visited.go('rollout/fix-1%3A0?tab=tokens');
    await visited.page.getByRole('button', { name: 'mismatch' }).click();
    await visited.page.locator('.tokens .tk:not(.tk-none)').first().hover();
    await visited.page.locator('.token-facts', { hasText: /recomputed -.*advantage 1\.5.*KL .*step 1 of run-a/ }).waitFor();
  });

  test('hostile output is text: nothing runs, nothing turns around', async () => {
    await using visited = await visit(browser, { url: scene.service.url });
    const { page } = visited;
    for (const tab of ['conversation', 'tokens', 'verdict', 'raw', 'time']) {
      await visited.go(`rollout/hostile?tab=${tab}`);
      await page.waitForSelector('[role=tabpanel] > *');
      if (tab === 'conversation') await page.getByText('⟨U+202E⟩gnp.exe').first().waitFor();
      assert.equal(await page.evaluate('window.hacked'), undefined);
      assert.equal(await page.locator('main script, main img, main iframe, main b').count(), 0);
      assert.doesNotMatch(await page.locator('main').innerText(), /[\u202a-\u202e\u2066-\u2069]/);
    }
    assert.ok(hostileText.includes('\u202e'), 'the text had an override');
  });

  test('branches are a tree with roles, and a replay shows what the agent had seen; a link shows the same', async () => {
    await using visited = await visit(browser, { url: scene.service.url });
    const { page } = visited;
    await visited.go('rollout/several-agents');
    const tree = page.getByRole('group', { name: /branches/ });
    for (const role of [/main.*opening|main/, /sub-agent/, /side-call/, /leaves 1 after \d+ tokens.*edited/])
      await tree.getByRole('button', { name: role }).first().waitFor();
    await tree
      .getByRole('button', { name: /sub-agent/ })
      .first()
      .click();
    await page.getByText('You are the sub-agent').waitFor();
    await visited.go('rollout/fix-1%3A0');
    await page.getByRole('button', { name: /replay/ }).click();
    await page.getByText('turn 1 of').waitFor();
    const first = await page.locator('.message').count();
    await page.keyboard.press('.');
    await page.waitForURL(/turn=2/);
    assert.ok((await page.locator('.message').count()) > first);
    await page.reload();
    await page.getByText('turn 2 of').waitFor();
  });

  test('an exported page and the store of a running service show the same as the service, and the page loads nothing', async () => {
    await using folder = await makeTempFolder('mr-export');
    const file = join(folder.path, 'page.html');
    const io = openIo({ env: { MILLRACE_URL: scene.service.url, MILLRACE_KEY: adminKey } });
    const { code, err } = await millrace(['export', 'fix-1:0', 'hostile', '--html', file], io);
    assert.equal(code, 0, err);
    await using exported = await visit(browser, { url: pathToFileURL(file).href });
    const { page } = exported;
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url().replace(/#.*/, '')));
    await page.goto(`${pathToFileURL(file).href}#/rollout/hostile`);
    await page.getByText('⟨U+202E⟩gnp.exe').first().waitFor();
    await page.evaluate("location.hash = '#/rollout/fix-1%3A0?tab=tokens'");
    await page.waitForSelector('.tk');
    assert.match((await page.locator('.tk').allTextContents()).join(''), /greet\.sh/);
    assert.equal(await page.evaluate('window.hacked'), undefined);
    assert.deepEqual(await findBarriers(page), []);
    assert.deepEqual(
      [...new Set(asked)].filter((one) => !one.startsWith('data:')),
      [pathToFileURL(file).href],
    );
    await using viewer = await viewPath({ path: scene.service.storePath, port: 0, tokenizer: undefined, blobs: 'store' });
    await using viewed = await visit(browser, { url: viewer.url });
    await viewed.go('rollout/fix-1%3A0');
    await viewed.page.getByText('greet.sh should print').waitFor();
  });

  test('a trajectory of more than 64,000 tokens opens, with only the near blocks drawn, and can be scrolled to its end', async () => {
    await using visited = await visit(browser, { url: scene.service.url });
    const { page } = visited;
    await visited.go('rollout/long?tab=tokens');
    await page.waitForSelector('.tk');
    const count = Number(await page.locator('.tokens').getAttribute('data-count'));
    assert.ok(count > 64_000, `${count} tokens`);
    assert.ok((await page.locator('.tk').count()) < 20_000, 'far blocks are not drawn');
    await page.locator('main').evaluate((main) => main.scrollTo(0, main.scrollHeight));
    await page.waitForSelector(`[data-at="${count - 1}"]`);
    await page.locator(`[data-at="${count - 1}"]`).hover();
    await page.getByText(`position ${count - 1}`).waitFor();
  });

  test('rollouts are filtered, sorted and opened by keyboard alone', async () => {
    await using visited = await visit(browser, { url: scene.service.url });
    const { page } = visited;
    await visited.go('now');
    await page.waitForSelector('.u-wrap');
    await page.keyboard.press('g');
    await page.keyboard.press('r');
    await page.waitForSelector('.row .tag');
    await page.keyboard.press('/');
    await page.keyboard.type('broken-setup');
    await page.getByText(/^3 match/).waitFor();
    await page.getByRole('listbox').focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByText('init-failed').first().waitFor();
    await page.keyboard.press('5');
    await page.waitForURL(/tab=raw/);
    await page.keyboard.press('Escape');
    await page.waitForURL(/text=broken-setup/);
  });

  test('the page finds the service again after a restart, and shows what happened since', async () => {
    await using visited = await visit(browser, { url: scene.service.url, expected: /Failed to load resource|ERR_/ });
    const { page } = visited;
    await visited.go('now');
    await page.getByRole('status').getByText('live').waitFor();
    await scene.service.stop();
    await page.getByText('reconnecting').waitFor();
    await scene.service.start();
    await page.getByRole('status').getByText('live', { exact: true }).waitFor();
    await runAll(scene.client, [{ id: 'after-restart', scenario: 'math', task: { question: 'What is 7 × 8?', answer: '56' } }]);
    await page.getByRole('link', { name: 'after-restart' }).first().waitFor();
    await visited.go('rollouts');
    await page.getByText('after-restart').first().waitFor();
  });
});

/** Serious and critical findings of axe. The page's policy allows no inline script, so axe is run by the driver. */
async function findBarriers(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const found = await page.evaluate<{ id: string; impact: string; nodes: { html: string }[] }[]>(
    'axe.run().then((result) => result.violations)',
  );
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.length} × ${nodes[0]?.html.slice(0, 200)}`);
}
