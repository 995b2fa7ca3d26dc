// A model's name, such as Qwen/Qwen3-8B, in the place of its folder: it is looked for where this machine has it already, and fetched only
// from the mirror that HF_ENDPOINT names.

import { mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { isAddress } from '@millrace/model';
import { messageOf } from '@millrace/protocol';
import type { ServiceConfig } from '@millrace/server';
import { type Io, UsageError } from '../command/command.ts';

interface FoundModel {
  readonly folder: string;
  /** Where it was found, for people. */
  readonly how: string;
}

interface ModelPlaces {
  /** LLM servers that may have the model on this machine; absent where none can be named. */
  readonly backends?: readonly string[];
  readonly env: Io['env'];
}

/** The configuration with the folder in the place of a model's name. Says where it is. Throws a UsageError that lists where it was not. */
export async function withModelFolder(config: ServiceConfig, { backends, io }: { readonly backends: readonly string[]; readonly io: Io }) {
  const { tokenizer } = config.model;
  if (tokenizer === undefined || !(await isModelName(tokenizer))) return config;
  const { folder, how } = await findModel(tokenizer, { backends, env: io.env });
  io.stderr.write(`millrace: the tokenizer of ${tokenizer} is in ${folder}, ${how}\n`);
  return { ...config, model: { ...config.model, tokenizer: folder } };
}

const modelName = /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/;

/** A folder that exists comes first. */
export async function isModelName(tokenizer: string): Promise<boolean> {
  return !isAddress(tokenizer) && modelName.test(tokenizer) && !(await isFolder(tokenizer));
}

export async function findModel(name: string, places: ModelPlaces): Promise<FoundModel> {
  const missed: string[] = [];
  for (const find of [findAtBackends, findInHubCache, findInOwnCache, fetchFromMirror]) {
    const found = await find(name, places);
    if (typeof found === 'object') return found;
    if (found !== undefined) missed.push(found);
  }
  const advice = `hf download ${name} --local-dir FOLDER gets it, or set HF_ENDPOINT to the address of a mirror`;
  const lines = missed.map((one) => `  ${one}\n`).join('');
  throw new UsageError(`${name} is no folder, and the model was not found by its name:\n${lines}${advice}`);
}

type Find = (name: string, places: ModelPlaces) => Promise<FoundModel | string | undefined>;

/** vLLM and SGLang say which folder they serve. */
const findAtBackends: Find = async (name, { backends }) => {
  if (backends === undefined) return undefined;
  for (const url of backends) {
    const reply = await fetch(new URL('/v1/models', url), { signal: AbortSignal.timeout(5000) }).catch(() => undefined); // it may start later
    const body = (await reply?.json().catch(() => undefined)) as { data?: readonly { id?: unknown; root?: unknown }[] } | undefined;
    const root = body?.data?.find(({ id }) => id === name)?.root;
    if (typeof root === 'string' && isAbsolute(root) && (await hasTokenizer(root))) return { folder: root, how: `which ${url} serves` };
  }
  return backends.length === 0 ? 'no --backend was given to ask' : `no folder of this machine is served by ${backends.join(', ')}`;
};

const findInHubCache: Find = async (name, { env }) => {
  const hub = env.HF_HUB_CACHE || join(env.HF_HOME || join(homedir(), '.cache/huggingface'), 'hub');
  const folder = join(hub, `models--${name.replace('/', '--')}`);
  const commit = await readFile(join(folder, 'refs/main'), 'utf8').catch(() => '');
  const snapshot = join(folder, 'snapshots', commit.trim());
  return commit !== '' && (await hasTokenizer(snapshot)) ? { folder: snapshot, how: 'of the hub cache' } : `not in the hub cache ${hub}`;
};

const findInOwnCache: Find = async (name, { env }) => {
  const folder = toOwnFolder(name, env);
  return (await hasTokenizer(folder)) ? { folder, how: 'fetched before' } : `not in ${dirname(folder)}`;
};

const needed = ['tokenizer_config.json'];
const either = ['tokenizer.json', 'tekken.json'];
const useful = ['chat_template.jinja', 'chat_template.json', 'generation_config.json'];

/** The folder appears when it is complete. */
const fetchFromMirror: Find = async (name, { env }) => {
  const endpoint = env.HF_ENDPOINT;
  if (!endpoint) return 'no mirror: HF_ENDPOINT is not set';
  const target = toOwnFolder(name, env);
  await mkdir(dirname(target), { recursive: true });
  const folder = await mkdtemp(`${target}-`);
  try {
    const written: string[] = [];
    for (const file of [...needed, ...either, ...useful])
      if (await fetchFile(`${endpoint}/${name}/resolve/main/${file}`, join(folder, file), env)) written.push(file);
    if (!either.some((file) => written.includes(file))) return `${endpoint}/${name} has neither ${either.join(' nor ')}`;
    await rename(folder, target);
    return { folder: target, how: `fetched from ${endpoint}` };
  } catch (error) {
    return `${endpoint}: ${messageOf(error)}`;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

/** False if the mirror does not have it. */
async function fetchFile(url: string, path: string, env: Io['env']): Promise<boolean> {
  const headers = env.HF_TOKEN ? { authorization: `Bearer ${env.HF_TOKEN}` } : {};
  const reply = await fetch(url, { headers, signal: AbortSignal.timeout(60_000) });
  if (reply.status === 404) return false;
  if (!reply.ok) throw new Error(`GET ${url} answered ${reply.status}${reply.status === 401 ? ': set HF_TOKEN' : ''}`);
  await writeFile(path, Buffer.from(await reply.arrayBuffer()));
  return true;
}

function toOwnFolder(name: string, env: Io['env']): string {
  return join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'millrace/models', name.replace('/', '--'));
}

async function hasTokenizer(folder: string): Promise<boolean> {
  const found = await Promise.all(either.map((file) => stat(join(folder, file)).catch(() => undefined)));
  return found.some((one) => one?.isFile());
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}
