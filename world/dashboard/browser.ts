// Debian's Chromium, driven by Playwright, with a page of the dashboard that is signed in. Every error of the page fails the test that
// closes it.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';
import { adminKey } from './scene.ts';

const program = '/usr/bin/chromium';

export const skipBrowser = existsSync(program) ? false : `${program} is not installed; try: sudo apt-get install -y chromium`;

export async function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: program, args: ['--no-sandbox', '--font-render-hinting=none'] });
}

interface PageVisit extends AsyncDisposable {
  readonly page: Page;
  /** Shows a page of the dashboard: the part of the address after `#/`. */
  go(address: string): Promise<void>;
}

interface VisitOptions {
  readonly url: string;
  readonly key?: string;
  readonly theme?: 'dark' | 'light';
  readonly width?: number;
  readonly height?: number;
  /** Messages that the test causes, such as those of a server that was stopped. */
  readonly expected?: RegExp;
}

export async function visit(browser: Browser, options: VisitOptions): Promise<PageVisit> {
  const { url, key = adminKey, theme = 'light', width = 1440, height = 900, expected } = options;
  const context = await browser.newContext({ colorScheme: theme, viewport: { width, height } });
  const page = await context.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && !(expected?.test(message.text()) ?? false)) errors.push(message.text());
  });
  await page.addInitScript((value) => sessionStorage.setItem('millrace-key', value), key);
  return {
    page,
    async go(address) {
      await page.goto(`${url}/#/${address}`);
    },
    async [Symbol.asyncDispose]() {
      await context.close();
      assert.deepEqual(errors, [], 'the page has no errors');
    },
  };
}
