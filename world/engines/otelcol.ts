// A real OpenTelemetry collector: takes traces over OTLP and sends them on as JSON. Built from the Go module proxy into the cache of the
// second test tier, with the versions of otelcol/go.mod.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EngineProcess } from './engine-process.ts';
import { worldCacheFolder } from './world-cache.ts';

const sources = join(import.meta.dirname, 'otelcol');

/** Builds it on the first call, in a few minutes; needs Go for that. */
function findCollector(): string {
  const hash = createHash('sha256');
  for (const name of ['main.go', 'go.mod', 'go.sum']) hash.update(readFileSync(join(sources, name)));
  const folder = join(worldCacheFolder(), `otelcol-${hash.digest('hex').slice(0, 12)}`);
  const program = join(folder, 'otelcol');
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  const env = { ...process.env, GOFLAGS: '-trimpath -mod=mod' };
  execFileSync('go', ['build', '-ldflags=-s -w', '-o', program, '.'], { cwd: sources, env, stdio: ['ignore', 'ignore', 'pipe'] });
  return program;
}

interface Collector extends AsyncDisposable {
  /** Takes traces over OTLP. */
  readonly url: string;
}

/** Sends what it gets on to `target`. Its configuration is written into the folder. */
export async function openCollector(folder: string, target: string): Promise<Collector> {
  const path = join(folder, 'otelcol.yaml');
  const program = findCollector();
  const process = await EngineProcess.open({
    name: 'otelcol',
    program,
    args: (port) => {
      const endpoint = `127.0.0.1:${port}`;
      const config = {
        receivers: { otlp: { protocols: { http: { endpoint } } } },
        exporters: { otlphttp: { traces_endpoint: target, encoding: 'json', compression: 'none', retry_on_failure: { enabled: false } } },
        service: {
          telemetry: { metrics: { level: 'none' } },
          pipelines: { traces: { receivers: ['otlp'], exporters: ['otlphttp'] } },
        },
      };
      writeFileSync(path, JSON.stringify(config)); // YAML has JSON in it
      return ['--config', path];
    },
    startMs: 30_000,
    healthyStatus: 404,
  });
  return { url: `${process.url}/v1/traces`, [Symbol.asyncDispose]: () => process[Symbol.asyncDispose]() };
}
