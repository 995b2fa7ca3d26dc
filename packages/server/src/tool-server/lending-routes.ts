// Whole sandboxes for programs on this machine or elsewhere that bring an agent of their own, such as Harbor: open, run, write, read, close.

import { definedOf, RolloutError } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { check } from '../http/request/check.ts';
import type { ToolAppOptions } from './tool-options.ts';

const maxFileBytes = 64 << 20;
const capBytes = 4 << 20;

const named = z.object({ name: z.string().min(1).max(256) });
const variables = z.record(z.string(), z.string());
const openRequest = z.strictObject({
  name: z.string().min(1).max(256),
  image: z.string().min(1).optional(),
  env: variables.optional(),
  network: z.enum(['none', 'host']).optional(),
  limits: z
    .strictObject({ cpus: z.number().gt(0), memoryMiB: z.int().min(16), diskMiB: z.int().min(16) })
    .partial()
    .optional(),
});
const execRequest = z.strictObject({
  argv: z.array(z.string()).min(1),
  cwd: z.string().optional(),
  env: variables.optional(),
  timeout_s: z.number().gt(0).max(86_400).default(600),
});
const fileQuery = z.strictObject({ path: z.string().min(1).max(4000), mode: z.coerce.number().int().min(0).max(0o7777).optional() });

export function mountLending(app: FastifyInstance, { sandboxes }: ToolAppOptions): void {
  app.addContentTypeParser('application/octet-stream', { parseAs: 'buffer', bodyLimit: maxFileBytes }, (_request, body, done) =>
    done(null, body),
  );
  const withSandbox = async <T>({ params }: FastifyRequest, act: (sandbox: Sandbox) => Promise<T>): Promise<T> => {
    const { name } = await check(named, params);
    if (!sandboxes.has(name))
      throw new RolloutError('not-found', `no sandbox is named ${name}: it was not opened, or was idle for too long`);
    return await sandboxes.use(name, {}, act);
  };
  app.post('/sandboxes', async ({ body }) => {
    const { name, limits, ...spec } = await check(openRequest, body);
    if (sandboxes.has(name)) throw new RolloutError('conflict', `a sandbox named ${name} is open: close it, or choose another name`);
    await sandboxes.use(name, definedOf({ ...spec, limits: limits && definedOf(limits) }), async () => {});
    return { name };
  });
  app.post('/sandboxes/:name/exec', async (request) => {
    const { argv, timeout_s, ...given } = await check(execRequest, request.body);
    const options = { ...definedOf(given), timeoutMs: timeout_s * 1000, capBytes };
    const result = await withSandbox(request, (sandbox) => sandbox.exec(argv, options));
    return {
      exit_code: result.exitCode ?? null,
      signal: result.signal ?? null,
      timed_out: result.timedOut,
      stdout: result.stdout.toString('utf8'),
      stderr: result.stderr.toString('utf8'),
      cut_bytes: result.cutBytes,
    };
  });
  app.put('/sandboxes/:name/file', async (request) => {
    const { path, mode } = await check(fileQuery, request.query);
    const content = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
    await withSandbox(request, (sandbox) => sandbox.writeFile(path, content, definedOf({ mode })));
    return { path, bytes: content.length };
  });
  app.get('/sandboxes/:name/file', async (request, reply) => {
    const { path } = await check(fileQuery, request.query);
    const content = await withSandbox(request, (sandbox) => sandbox.readFile(path, { maxBytes: maxFileBytes }));
    return reply.type('application/octet-stream').send(content);
  });
  app.delete('/sandboxes/:name', async ({ params }) => {
    const { name } = await check(named, params);
    const was = sandboxes.has(name);
    await sandboxes.close(name);
    return { name, closed: was };
  });
}
