// A real llama-server with the tiny model, for tests: started on a free port of the loopback address, gone with whoever opened it.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { makeTinyModel, testCacheFolder } from './tiny-model.ts';

/** Where the program is: `MILLRACE_LLAMA_SERVER`, then PATH, then where scripts/install-llama-server.sh puts it. */
export function findLlamaServer(): string | undefined {
  const { MILLRACE_LLAMA_SERVER: given, MILLRACE_LLAMA_SERVER_DIR: folder, PATH = '' } = process.env;
  const folders = [...PATH.split(delimiter), folder ?? join(testCacheFolder(), 'llama-server')];
  return [...(given === undefined ? [] : [given]), ...folders.map((path) => join(path, 'llama-server'))].find(isExecutable);
}

/** Why tests with it are skipped; false where they are not. */
export function skipWithoutLlamaServer(): string | false {
  return findLlamaServer() === undefined && 'there is no llama-server; scripts/install-llama-server.sh gets one';
}

export interface LlamaServer extends AsyncDisposable {
  readonly url: string;
}

export interface LlamaServerOptions {
  /** Requests that run at once. */
  readonly slots?: number;
  /** The context of each of them. */
  readonly contextTokens?: number;
}

export async function openLlamaServer({ slots = 4, contextTokens = 1024 }: LlamaServerOptions = {}): Promise<LlamaServer> {
  const program = findLlamaServer();
  if (program === undefined) throw new Error('there is no llama-server; scripts/install-llama-server.sh gets one');
  const sizes = ['--parallel', `${slots}`, '--ctx-size', `${slots * contextTokens}`, '--threads', '1', '--threads-batch', '1'];
  const rest = ['--host', '127.0.0.1', '--port', '0', '--no-warmup', '--no-ui', '--cache-ram', '0', '--log-colors', 'off'];
  const args = [program, '--model', await makeTinyModel(), ...sizes, ...rest];
  // It dies with this process, however that dies.
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

/** It says where it listens once the model is loaded. */
async function readUrl(child: ChildProcess): Promise<string> {
  const said: string[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  child.once('error', reject);
  child.once('exit', (code) => reject(new Error(`llama-server ended with ${code}:\n${said.slice(-10).join('\n')}`)));
  for (const stream of [child.stdout, child.stderr]) {
    if (!stream) continue;
    createInterface(stream).on('line', (line) => {
      const url = /listening on (http:\/\/\S+)/.exec(line)?.[1];
      if (url) resolve(url);
      if (said.length < 1000) said.push(line);
    });
  }
  return await promise;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // whether it is there is the question
  }
}
