// One HTML page with some rollouts and everything that shows them: scripts, styles and data. Its own policy allows these scripts and
// nothing else: no request leaves it, and what an agent wrote stays text.

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { findParts } from '@millrace/base/parts';
import { type ExportedData, type ExportedRollout, exportedDataId } from '@millrace/dashboard';
import { RolloutError, type TokenPieces } from '@millrace/protocol';
import type { ViewSource } from './view-source.ts';

export async function exportPage(source: ViewSource, ids: readonly string[]): Promise<string> {
  return renderPage(await readFiles(), await collect(source, ids));
}

async function collect(source: ViewSource, ids: readonly string[]): Promise<ExportedData> {
  const rollouts: ExportedRollout[] = [];
  const known: Record<string, string> = {};
  let pieces: TokenPieces = { pieces: known };
  for (const id of ids) {
    const [view, trajectory] = [await source.rollout(id), (await orNone(source.trajectory(id))) ?? null];
    rollouts.push({ view, trajectory, task: (await orNone(source.task(id))) ?? null, events: await source.events(id) });
    if (trajectory === null || pieces.pieces === null) continue;
    const own = await source.pieces(trajectory);
    if (own.pieces === null) pieces = own;
    else Object.assign(known, own.pieces);
  }
  return { title: source.title, rollouts, pieces };
}

async function orNone<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof RolloutError && error.code === 'not-found') return undefined;
    throw error;
  }
}

interface PageFiles {
  readonly script: string;
  readonly style: string;
  readonly icon: string;
}

async function readFiles(): Promise<PageFiles> {
  const folder = findParts().dashboard;
  const read = (name: string) => readFile(new URL(name.replace(/^\//, ''), folder), 'utf8');
  const html = await read('index.html').catch(() => {
    throw new RolloutError('internal', 'the dashboard is not built in this clone: run npm run build:dashboard');
  });
  const [script, style] = [quotedUpTo(html, '.js"'), quotedUpTo(html, '.css"')];
  return { script: await read(script), style: await read(style), icon: await read('favicon.svg') };
}

/** The attribute that ends like this, without its quotes. */
function quotedUpTo(html: string, end: string): string {
  const at = html.indexOf(end);
  return html.slice(html.lastIndexOf('"', at) + 1, at + end.length - 1);
}

export function renderPage({ script, style, icon }: PageFiles, data: ExportedData): string {
  // The ends of these elements, inside strings of the code: each spelling means the same to it, and nothing to the parser of the page.
  const code = script.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
  const css = style.replaceAll('</', '<\\/');
  const policy = [
    "default-src 'none'",
    `script-src '${digest(code)}'`,
    `style-src '${digest(css)}'`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>Millrace</title>
<link rel="icon" href="data:image/svg+xml;base64,${Buffer.from(icon).toString('base64')}">
<style>${css}</style>
</head>
<body>
<div id="root"></div>
<noscript>This page needs JavaScript. It runs only its own, and loads nothing.</noscript>
<script type="application/json" id="${exportedDataId}">${toData(data)}</script>
<script type="module">${code}</script>
</body>
</html>
`;
}

/** Without a character that could end the element, or begin another. */
function toData(data: ExportedData): string {
  return JSON.stringify(data).replaceAll('<', '\\u003c');
}

function digest(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
