// `npm run screenshots`: runs a small training run, and writes the pictures of the dashboard for the README and the docs. With a folder as
// its argument it writes them there, in both themes.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { openBrowser, visit } from './browser.ts';
import { fillScene, hostile, long, openBranches, openScene, runAll } from './scene.ts';

const pages = [
  { name: 'now', address: 'now', ready: '.u-wrap' },
  { name: 'rollouts', address: 'rollouts', ready: '.row .tag' },
  { name: 'rollout', address: 'rollout/fix-3%3A0', ready: '.message-tool' },
  { name: 'tokens', address: 'rollout/fix-3%3A0?tab=tokens', ready: '.tk' },
  { name: 'time', address: 'rollout/fix-3%3A0?tab=time', ready: '.events li' },
  { name: 'verdict', address: 'rollout/fix-3%3A0?tab=verdict', ready: '.facts' },
  { name: 'group', address: 'group/fix-3', ready: '.compared .message' },
  { name: 'failures', address: 'failures', ready: '.failure' },
  { name: 'training', address: 'training', ready: '.u-wrap' },
  { name: 'batches', address: 'batches', ready: '.table tbody tr' },
  { name: 'batch', address: 'batch/step-7', ready: '.sibling' },
  { name: 'branches', address: 'rollout/several-agents?branch=2', ready: '.branch-on' },
  { name: 'replay', address: 'rollout/fix-3%3A0?turn=2', ready: '.replay' },
  { name: 'scan', address: 'scan?scenario=shell&pattern=guessed%3Dwrite+the+script+again', ready: '.findings li' },
  { name: 'hostile', address: 'rollout/hostile', ready: '.message-tool' },
] as const;

/** Those that the README and docs/dashboard.md show. */
const published = ['now', 'rollout', 'tokens', 'group', 'training', 'failures', 'branches', 'scan'];

const [folder] = process.argv.slice(2);
const target = folder ?? join(import.meta.dirname, '../../docs/pictures');
await mkdir(target, { recursive: true });
await using scene = await openScene({ latencyMs: 150 });
await fillScene(scene);
await openBranches(scene);
if (folder !== undefined) await runAll(scene.client, [hostile, long]);
await using browser = await openBrowser();
// The first page shows a service that works.
scene.backend.setLatency(({ index }) => 1000 + (index % 7) * 300);
const busy = runAll(
  scene.client,
  Array.from({ length: folder === undefined ? 400 : 700 }, (_, index) => ({
    id: `more-${index}`,
    scenario: 'math',
    task: { question: `What is ${100 + index} × 7?`, answer: String(700 + 7 * index) },
  })),
);
for (const theme of folder === undefined ? (['light'] as const) : (['light', 'dark'] as const)) {
  for (const { name, address, ready } of pages) {
    if (folder === undefined && !published.includes(name)) continue;
    await using visited = await visit(browser, { url: scene.service.url, theme });
    await visited.go(address);
    await visited.page.waitForSelector(ready);
    if (name === 'now') await visited.page.waitForTimeout(6000);
    if (name === 'tokens') {
      await visited.page.getByRole('button', { name: 'logprob' }).click();
      await visited.page
        .locator('.segment-head', { hasText: 'sampled' })
        .first()
        .evaluate((head) => head.scrollIntoView({ block: 'start' }));
      await visited.page.locator('.tk-lp4, .tk-lp5, .tk-lp6').nth(4).hover();
    }
    await visited.page.waitForTimeout(300);
    const file = folder === undefined ? `dashboard-${name}.png` : `${name}-${theme}.png`;
    await visited.page.screenshot({ path: join(target, file) });
    console.log(join(target, file));
  }
}
scene.backend.setLatency(0);
await busy;
