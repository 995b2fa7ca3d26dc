// A real llama-server with the tiny model, for tests. It listens on a free port of the loopback address and dies with this process.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { makeTinyModel, testCacheFolder } from './tiny-model.ts';

/** The path of the program: `MILLRACE_LLAMA_SERVER`, then PATH, then the folder of scripts/install-llama-server.sh. */
export function findLlamaServer(): string | undefined {
  const { MILLRACE_LLAMA_SERVER: given, MILLRACE_LLAMA_SERVER_DIR: folder, PATH = '' } = process.env;
  const folders = [...PATH.split(delimiter), folder ?? join(testCacheFolder(), 'llama-server')];
  return [...(given === undefined ? [] : [given]), ...folders.map((path) => join(path, 'llama-server'))].find(isExecutable);
}

/** Why tests with it are skipped; false if they run. */
export function skipWithoutLlamaServer(): string | false {
  return findLlamaServer() === undefined && 'there is no llama-server; scripts/install-llama-server.sh installs one';
}

export interface LlamaServer extends AsyncDisposable {
  readonly url: string;
}

export interface LlamaServerOptions {
  /** How many requests run at once. */
  readonly slots?: number;
  /** The context of each request. */
  readonly contextTokens?: number;
}

export async function openLlamaServer({ slots = 4, contextTokens = 1024 }: LlamaServerOptions = {}): Promise<LlamaServer> {
  const program = findLlamaServer();
  if (program === undefined) throw new Error('there is no llama-server; scripts/install-llama-server.sh installs one');
  const sizes = ['--parallel', `${slots}`, '--ctx-size', `${slots * contextTokens}`, '--threads', '1', '--threads-batch', '1'];
  const rest = ['--host', '127.0.0.1', '--port', '0', '--no-warmup', '--no-ui', '--cache-ram', '0', '--log-colors', 'off'];
  const args = [program, '--model', await makeTinyModel(), ...sizes, ...rest];
  // The kernel kills it when this process dies for any reason.
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const exited = once(child, 'exit');
  const url = await readUrl(child);
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** It prints its address when the model is loaded. */
async function readUrl(child: ChildProcess): Promise<string> {
  const lines: string[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  child.once('error', reject);
  child.once('exit', (code) => reject(new Error(`llama-server ended with ${code}:\n${lines.slice(-10).join('\n')}`)));
  for (const stream of [child.stdout, child.stderr]) {
    if (!stream) continue;
    createInterface(stream).on('line', (line) => {
      const url = /listening on (http:\/\/\S+)/.exec(line)?.[1];
      if (url) resolve(url);
      if (lines.length < 1000) lines.push(line);
    });
  }
  return await promise;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // missing or not executable
  }
}
