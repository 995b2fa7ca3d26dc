// The dashboard's files, read once at the start and answered from memory. They hold no data and need no key. Their headers let a page run
// only the scripts of this service, and let no other site show it in a frame.

import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { dashboardPaths } from '@millrace/protocol';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

const compress = promisify(gzip);

interface StaticFile {
  readonly bytes: Buffer;
  readonly type: string;
  readonly etag: string;
  zipped?: Promise<Buffer>;
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Everything is from this service; no inline script, no frame, no form, no other site. */
export const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const headers = {
  'content-security-policy': contentSecurityPolicy,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  vary: 'accept-encoding',
};

const missing = `<!doctype html><meta charset="utf-8"><title>Millrace</title><p>The dashboard is not built in this clone. Run
<code>npm run build:dashboard</code>, and start the service again. The API works without it.`;

export async function mountStaticFiles(app: FastifyInstance, folder: URL): Promise<void> {
  const files = await readFiles(folder);
  const [page, icon, assets] = dashboardPaths;
  app.get(page, (request, reply) => send(files.get('index.html') ?? toFile('.html', Buffer.from(missing)), request, reply));
  app.get(icon, (request, reply) => sendOrMissing(files.get('favicon.svg'), request, reply));
  app.get<{ Params: { name: string } }>(assets, (request, reply) => {
    // The name of a file changes with its content.
    reply.header('cache-control', 'public, max-age=31536000, immutable');
    return sendOrMissing(files.get(`assets/${request.params.name}`), request, reply);
  });
}

function sendOrMissing(file: StaticFile | undefined, request: FastifyRequest, reply: FastifyReply): unknown {
  if (file !== undefined) return send(file, request, reply);
  reply.removeHeader('cache-control');
  return reply.callNotFound();
}

async function send(file: StaticFile, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  reply.headers({ ...headers, etag: file.etag }).type(file.type);
  if (reply.getHeader('cache-control') === undefined) reply.header('cache-control', 'no-cache');
  if (request.headers['if-none-match'] === file.etag) return reply.status(304).send();
  if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(file.bytes);
  file.zipped ??= compress(file.bytes, { level: 9 });
  return reply.header('content-encoding', 'gzip').send(await file.zipped);
}

/** None if the dashboard is not built. */
async function readFiles(folder: URL): Promise<ReadonlyMap<string, StaticFile>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []); // a clone that has not built it
  const files = new Map<string, StaticFile>();
  for (const entry of entries.filter((one) => one.isFile() && types[extname(one.name)] !== undefined)) {
    const name = entry.parentPath.replace(/\/$/, '').endsWith('/assets') ? `assets/${entry.name}` : entry.name;
    files.set(name, toFile(extname(entry.name), await readFile(`${entry.parentPath}/${entry.name}`)));
  }
  return files;
}

function toFile(extension: string, bytes: Buffer): StaticFile {
  const etag = `"${createHash('sha256').update(bytes).digest('hex').slice(0, 24)}"`;
  return { bytes, etag, type: types[extension] ?? 'application/octet-stream' };
}
