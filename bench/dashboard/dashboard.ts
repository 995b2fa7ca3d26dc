// What the dashboard costs: scrolling 100,000 rollouts and opening a long trajectory in a real browser, what the server pays for twenty open
// pages, and the size of what a browser loads. Each has a baseline from the same run.

import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { findParts } from '@millrace/base/parts';
import { viewPath } from '@millrace/server';
import { makeTempFolder, qwen3Folder } from '@millrace/testkit';
import type { Page } from 'playwright-core';
import { openBrowser, visit } from '../../world/dashboard/browser.ts';
import { type BenchReport, percentile, round } from '../report/report.ts';
import { makeResults } from './make-results.ts';
import { measureServer } from './server-cost.ts';

const rollouts = 100_000;
const longTokens = 64_000;
const shortTokens = 1000;
const frames = 200;
const openings = 5;

export async function runDashboardBench(): Promise<BenchReport> {
  const pages = await measurePages();
  const server = await measureServer();
  const bundle = await measureBundle();
  const { few, many } = pages;
  const [scroll, open] = [percentile(many.scrolled, 0.95), percentile(many.opened, 0.5)];
  const extra = percentile(server.open, 0.5) - percentile(server.closed, 0.5);
  return {
    title: 'The dashboard',
    rows: [
      { what: 'a frame while 100 rollouts are scrolled', unit: 'ms', samples: few.scrolled },
      { what: 'a frame while 100,000 rollouts are scrolled', unit: 'ms', samples: many.scrolled, against: 0 },
      { what: 'its mean on the main thread of the page, 100 rollouts', unit: 'ms CPU', samples: [few.frameCpu] },
      { what: 'the same with 100,000 rollouts', unit: 'ms CPU', samples: [many.frameCpu], against: 2 },
      { what: `opening the tokens of a trajectory of ${shortTokens.toLocaleString('en')}`, unit: 'ms', samples: few.opened },
      { what: `opening the tokens of a trajectory of ${longTokens.toLocaleString('en')}`, unit: 'ms', samples: many.opened, against: 4 },
      { what: 'its part of the main thread of the page, short', unit: 'ms CPU', samples: few.openedCpu },
      { what: 'the same, long', unit: 'ms CPU', samples: many.openedCpu, against: 6 },
      { what: `server with ${server.perS.toFixed(1)} rollouts/s, no page open`, unit: '% of a core', samples: server.closed },
      { what: `the same with ${server.pages} pages open`, unit: '% of a core', samples: server.open, against: 8 },
      { what: 'scripts and styles, compressed', unit: 'kB', samples: [bundle / 1000] },
    ],
    targets: [
      { claim: `100,000 rollouts are scrolled with frames below 32 ms (p95: ${round(scroll)} ms)`, kept: scroll < 32 },
      { claim: `${longTokens.toLocaleString('en')} tokens open within a second (p50: ${round(open)} ms)`, kept: open < 1000 },
      { claim: `${server.pages} open pages cost the server less than 5 % of a core (${round(extra)} %)`, kept: extra < 5 },
      { claim: `a browser loads less than 500 kB (${round(bundle / 1000)} kB)`, kept: bundle < 500_000 },
    ],
    notes: [
      `Chromium without a GPU, by a driver; the list jumps by a few lines up to thousands of them with each frame. A trajectory is opened from the
list to its first drawn token; the service is a viewer of a file. The ${server.pages} pages are their requests: the event stream, the status, and half of them
the list of rollouts, as the page sends them. The server's cost is its CPU time, in windows with and without pages in turns.`,
    ],
  };
}

async function measurePages() {
  await using folder = await makeTempFolder('mr-bench');
  const [many, few] = [join(folder.path, 'many.jsonl'), join(folder.path, 'few.jsonl')];
  await writeLines(many, makeResults({ count: rollouts, tokens: longTokens }));
  await writeLines(few, makeResults({ count: 100, tokens: shortTokens }));
  await using browser = await openBrowser();
  const measure = async (path: string) => {
    await using viewer = await viewPath({ path, port: 0, tokenizer: qwen3Folder(), blobs: 'store' });
    await using visited = await visit(browser, { url: viewer.url });
    await visited.go('rollouts');
    await visited.page.waitForSelector('.row .tag');
    const readCpu = await openPageCpu(visited.page);
    const before = await readCpu();
    const scrolled = await scroll(visited.page);
    const frameCpu = ((await readCpu()) - before) / scrolled.length;
    const [opened, openedCpu]: [number[], number[]] = [[], []];
    for (let count = 0; count < openings; count++) {
      await visited.go('rollouts');
      await visited.page.waitForSelector('.row .tag');
      const began = await readCpu();
      opened.push(await open(visited.page));
      openedCpu.push((await readCpu()) - began);
    }
    return { scrolled, frameCpu, opened, openedCpu };
  };
  return { few: await measure(few), many: await measure(many) };
}

async function writeLines(path: string, lines: Iterable<string>): Promise<void> {
  const file = createWriteStream(path);
  for (const line of lines) if (!file.write(`${line}\n`)) await once(file, 'drain');
  file.end();
  await once(file, 'finish');
}

/** Reads the CPU time of the page's main thread, in milliseconds: on a busy machine it says more than the clock. */
async function openPageCpu(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  return async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return 1000 * (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN);
  };
}

/** The times between frames, while each frame moves the list: by a few lines, and now and then far. */
async function scroll(page: Page): Promise<number[]> {
  return await page.evaluate(`new Promise((done) => {
    const list = document.querySelector('.rows');
    const times = [];
    let last = performance.now();
    const step = (now) => {
      times.push(now - last);
      last = now;
      if (times.length > ${frames}) return done(times.slice(1));
      const far = times.length % 20 === 0 ? list.scrollHeight / 7 : 180;
      list.scrollTop = (list.scrollTop + far) % (list.scrollHeight - list.clientHeight + 1);
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  })`);
}

/** From the click to the first frame with tokens. */
async function open(page: Page): Promise<number> {
  return await page.evaluate(`new Promise((done) => {
    const began = performance.now();
    location.hash = '#/rollout/long?tab=tokens';
    const look = () => (document.querySelector('.tk') ? done(performance.now() - began) : requestAnimationFrame(look));
    requestAnimationFrame(look);
  })`);
}

/** Bytes of what a page loads, as the server sends it. */
async function measureBundle(): Promise<number> {
  const folder = findParts().dashboard;
  const names = await readdir(new URL('assets/', folder));
  const files = await Promise.all([...names.map((name) => `assets/${name}`), 'index.html'].map((name) => readFile(new URL(name, folder))));
  const packed = await Promise.all(files.map((bytes) => promisify(gzip)(bytes, { level: 9 })));
  return packed.reduce((sum, { length }) => sum + length, 0);
}
