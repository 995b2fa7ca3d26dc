// What a service needs before it may start, checked once in one process: folders, port, sandbox driver, scenarios, task files and
// the model's files. `millrace serve` refuses to start when one fails, and `millrace doctor` shows the same list.

import { constants } from 'node:fs';
import { access, mkdtemp, rm, stat, statfs } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { systemClock } from '@millrace/base/clock';
import { networkFileSystemOf } from '@millrace/base/network-file-system';
import { Pace } from '@millrace/base/pace';
import type { NewBackend } from '@millrace/engines';
import { isAddress, openModel, readTokenizerFiles } from '@millrace/model';
import { type BackendView, joinRequest, messageOf, RolloutError } from '@millrace/protocol';
import { findExecutor, measureSocketPath, probeApptainer, probeBubblewrap } from '@millrace/sandbox';
import { loadScenarios, OutsideTools, readPrompts } from '@millrace/scenarios';
import { probeNewServer, sampleTokenizer, type TokenizerSample } from '@millrace/worker';
import type { ServiceConfig } from './config.ts';
import { toBackendView } from './http/context/backend-view.ts';
import { checkListen, hasKeys } from './http/request/auth.ts';
import { probeAs, toNewBackend } from './http/routes/backend-routes.ts';

/** `fail`: the service cannot start. `warn`: it can, but something will hurt. Every check that is not ok says how to fix it. */
export type Check =
  | { readonly name: string; readonly level: 'ok'; readonly seen: string }
  | { readonly name: string; readonly level: 'warn' | 'fail'; readonly seen: string; readonly remedy: string };

/** Changes nothing on disk, and frees the port again. `workers`: how many the service would start. */
export async function runStartChecks(config: ServiceConfig, options: { readonly workers: number }): Promise<Check[]> {
  const { sandbox, http, model } = config;
  const forWorkers = [
    () => checkDriver(sandbox.driver),
    () => checkRunFolder(config.run),
    checkExecutor,
    ...(sandbox.driver === 'apptainer' ? [() => checkFolder('image folder', sandbox.images, '`sandbox.images`')] : []),
    () => checkModelFiles(model.tokenizer),
  ];
  const checks = [
    () => checkAccess(http),
    () => checkPort(http.host, http.port),
    () => checkStore(config.data),
    () => checkDisk(config.data),
    () => checkScenarios(config),
    ...(Object.keys({ ...config.tools.http, ...config.tools.mcp }).length === 0 ? [] : [() => checkTools(config.tools)]),
    ...(config.prompts === undefined ? [] : [() => checkPrompts(config.prompts)]),
    ...Object.entries(config.sampling.taskFiles).map(
      ([name, path]) =>
        () =>
          checkTaskFile(name, path),
    ),
    ...(options.workers > 0 ? forWorkers : []),
  ];
  return Promise.all(checks.map(async (check) => check()));
}

export interface ModelCheck {
  readonly check: Check;
  /** Absent if the model cannot be used. */
  readonly tokenizer?: TokenizerSample;
}

/** Opens the model as a worker does: reads every file, and proves that the chat template can be continued exactly. */
export async function checkModel(config: ServiceConfig): Promise<ModelCheck> {
  const name = 'tokenizer';
  const files = await checkModelFiles(config.model.tokenizer);
  if (files.level === 'fail') return { check: files };
  try {
    const conversation = await openModel(config.model);
    const tokenizer = await sampleTokenizer(conversation, new Pace());
    const { parser, toolCalls } = conversation.profile;
    const seen = `${config.model.tokenizer}, tool calls as ${parser.name} (${toolCalls})`;
    const [warning] = conversation.warnings;
    if (warning === undefined) return { check: { name, level: 'ok', seen }, tokenizer };
    const remedy = 'set model.chatTemplate to a template with tools, or model.toolParser to the format that the model knows best';
    return { check: { name, level: 'warn', seen: `${seen}; ${warning}`, remedy }, tokenizer };
  } catch (error) {
    return { check: { name, level: 'fail', seen: messageOf(error), remedy: modelRemedy } };
  }
}

/** What the server at this address says about itself, as it would be shown if it joined. Throws if it could not be used. */
export async function lookAtBackend(url: string, tokenizer: TokenizerSample | undefined): Promise<BackendView> {
  const { signal } = new AbortController();
  const ask = (backend: NewBackend) => probeNewServer(backend, { clock: systemClock, signal, tokenizer });
  const { backend, probe, error } = await probeAs(toNewBackend(joinRequest.parse({ url })), ask, { isFree: true });
  if (probe === undefined) throw new RolloutError('backend-failed', error ?? '');
  return toBackendView({ ...backend, policyVersion: 0, probe }, { loads: [], workers: [] });
}

const modelRemedy = 'run millrace model check FOLDER; docs/models.md lists the models and templates that work';

/** A quick look: whether the files of the tokenizer can be read, as a worker reads them, or the address answers. */
async function checkModelFiles(tokenizer: string | undefined): Promise<Check> {
  const name = 'tokenizer';
  const fail = (seen: string, remedy: string): Check => ({ name, level: 'fail', seen, remedy });
  if (tokenizer === undefined) return fail('none is set', 'millrace serve --tokenizer FOLDER, where FOLDER holds tokenizer.json');
  if (isAddress(tokenizer)) {
    const reply = await fetch(new URL('/health', tokenizer), { signal: AbortSignal.timeout(5000) }).catch((error: Error) => error);
    if (reply instanceof Error) return fail(`${tokenizer} does not answer: ${causeOf(reply)}`, 'start the backend, or pass a folder');
    return reply.ok
      ? { name, level: 'ok', seen: `${tokenizer} answers` }
      : fail(`${tokenizer}/health returned ${reply.status}`, 'wait until the backend is ready, or pass a folder');
  }
  const folder = resolve(tokenizer);
  const found = await stat(folder).catch(() => undefined); // refused below
  if (found?.isFile()) return fail(`${folder} is a file`, `pass its folder: --tokenizer ${dirname(folder)}`);
  if (!found?.isDirectory())
    return fail(`there is no folder ${folder}`, 'pass the folder of the model: hf download MODEL --local-dir FOLDER gets one');
  return await readTokenizerFiles(folder).then(
    (): Check => ({ name, level: 'ok', seen: folder }),
    (error: Error) => fail(error.message, modelRemedy),
  );
}

async function checkDriver(driver: ServiceConfig['sandbox']['driver']): Promise<Check> {
  const probe = driver === 'bubblewrap' ? await probeBubblewrap() : await probeApptainer();
  if (!probe.ok) return { name: driver, level: 'fail', seen: probe.reason, remedy: probe.remedy };
  return { name: driver, level: 'ok', seen: `${probe.version}, starts a sandbox as this user` };
}

/** Our program inside every sandbox. */
async function checkExecutor(): Promise<Check> {
  const name = 'executor';
  try {
    const { size } = await stat(await findExecutor());
    return { name, level: 'ok', seen: `${Math.ceil(size / 1024)} KiB, the program inside each sandbox` };
  } catch (error) {
    const remedy = 'npm run build:executor in the clone, as the user who owns it; it needs gcc and libc6-dev';
    return { name, level: 'fail', seen: messageOf(error), remedy };
  }
}

function checkAccess(http: ServiceConfig['http']): Check {
  const name = 'access';
  try {
    checkListen(http);
  } catch (error) {
    const remedy = 'MILLRACE_KEY=<16 characters or more> millrace serve, or --host 127.0.0.1';
    return { name, level: 'fail', seen: messageOf(error), remedy };
  }
  const seen = hasKeys(http) ? 'callers need a key' : 'open to this machine only, without a key';
  return { name, level: 'ok', seen };
}

export async function checkPort(host: string, port: number): Promise<Check> {
  const name = 'port';
  const server = createServer();
  const failed = await new Promise<NodeJS.ErrnoException | undefined>((done) => {
    server.once('error', done);
    server.listen(port, host, () => done(undefined));
  });
  await new Promise((done) => (failed === undefined ? server.close(done) : done(undefined)));
  if (failed === undefined) return { name, level: 'ok', seen: port === 0 ? `any free one on ${host}` : `${host}:${port} is free` };
  const remedy = 'stop what listens there, or choose another port: --port 8008, or --port 0 for any free one';
  if (failed.code === 'EADDRINUSE') {
    const owner = (await isMillrace(host, port)) ? 'a Millrace service that is already running' : 'another program';
    return { name, level: 'fail', seen: `${host}:${port} is in use by ${owner}`, remedy };
  }
  const remedies: Readonly<Record<string, string>> = {
    EACCES: 'ports below 1024 are for root: choose another one, such as --port 8008',
    EADDRNOTAVAIL: `this machine has no address ${host}: --host 127.0.0.1, or --host 0.0.0.0 for all that it has`,
    ENOTFOUND: `this machine does not know the name ${host}: --host 127.0.0.1, or --host 0.0.0.0 for all addresses that it has`,
  };
  const seen = `cannot listen on ${host}:${port}: ${failed.message}`;
  return { name, level: 'fail', seen, remedy: remedies[failed.code ?? ''] ?? 'choose another port or address: --port, --host' };
}

async function isMillrace(host: string, port: number): Promise<boolean> {
  const name = host.includes(':') ? `[${host}]` : host;
  const reply = await fetch(`http://${name}:${port}/healthz`, { signal: AbortSignal.timeout(1000) }).catch(() => undefined);
  return (await reply?.text().catch(() => ''))?.trim() === '{"status":"ok"}';
}

async function checkStore(data: string): Promise<Check> {
  const name = 'store folder';
  const type = networkFileSystemOf(resolve(data));
  if (type === undefined) return checkFolder(name, data, '--data');
  const seen = `${resolve(data)} is on ${type}, where SQLite's locks are not reliable`;
  return { name, level: 'fail', seen, remedy: 'set --data to a folder on a disk of this machine' };
}

async function checkDisk(data: string): Promise<Check> {
  const name = 'free disk';
  const { bavail, bsize } = await statfs(await nearestExisting(data));
  const freeGib = (bavail * bsize) / 2 ** 30;
  const seen = `${freeGib.toFixed(1)} GiB under ${resolve(data)}`;
  if (freeGib >= 5) return { name, level: 'ok', seen };
  return { name, level: freeGib < 0.25 ? 'fail' : 'warn', seen, remedy: 'free some space, or set --data to a folder on another disk' };
}

export async function checkRunFolder(run: string): Promise<Check> {
  const name = 'run folder';
  const path = resolve(run);
  const { bytes, maxBytes } = measureSocketPath(path);
  if (bytes > maxBytes) {
    const seen = `${path} is too long: the path of a socket in it would have ${bytes} bytes, and ${maxBytes} are allowed`;
    return { name, level: 'fail', seen, remedy: 'set `run` to a shorter path, such as /tmp/millrace' };
  }
  const type = networkFileSystemOf(path);
  if (type === undefined) return checkFolder(name, run, '`run`');
  const seen = `${path} is on ${type}, which cannot hold sockets`;
  return { name, level: 'fail', seen, remedy: 'set `run` to a folder in /tmp' };
}

/** Writes into the folder, or into the nearest one above it that exists, and removes what it wrote. */
async function checkFolder(name: string, folder: string, setting: string): Promise<Check> {
  const path = resolve(folder);
  const existing = await nearestExisting(path);
  try {
    await rm(await mkdtemp(join(existing, '.millrace-check-')), { recursive: true });
    return { name, level: 'ok', seen: `${path} can be written` };
  } catch (error) {
    const seen = existing === path ? `${path} cannot be written` : `${path} cannot be made in ${existing}`;
    const why = messageOf(error).split(',')[0];
    return { name, level: 'fail', seen: `${seen}: ${why}`, remedy: `set ${setting} to a folder that you may write to` };
  }
}

async function checkScenarios({
  scenarios: paths,
  http,
  judge,
  gym,
  tools,
}: Pick<ServiceConfig, 'scenarios' | 'http' | 'judge' | 'gym' | 'tools'>): Promise<Check> {
  const name = 'scenarios';
  for (const path of paths) {
    if (await isReadable(path)) continue;
    const remedy = `pass the path of a module, as seen from ${process.cwd()}`;
    return { name, level: 'fail', seen: `${resolve(path)} cannot be read`, remedy };
  }
  try {
    return { name, level: 'ok', seen: (await loadScenarios(paths, { ...http.prorl, judge, gym, tools })).names().join(', ') };
  } catch (error) {
    const remedy = `fix it; millrace try ${paths[0] ?? 'scenario.ts'} shows the place`;
    return { name, level: 'fail', seen: messageOf(error), remedy };
  }
}

async function checkTools(config: ServiceConfig['tools']): Promise<Check> {
  const name = 'tools';
  try {
    await using _tools = new OutsideTools(config);
    return { name, level: 'ok', seen: Object.keys({ ...config.http, ...config.mcp }).join(', ') };
  } catch (error) {
    return { name, level: 'fail', seen: messageOf(error), remedy: 'set the variable for the service and its workers' };
  }
}

async function checkPrompts(folder = ''): Promise<Check> {
  const name = 'prompts';
  try {
    readPrompts(folder);
    return { name, level: 'ok', seen: resolve(folder) };
  } catch (error) {
    return { name, level: 'fail', seen: messageOf(error), remedy: 'fix the file; millrace new prompts writes the files that there are' };
  }
}

async function checkTaskFile(key: string, path: string): Promise<Check> {
  const name = 'task file';
  if (await isReadable(path)) return { name, level: 'ok', seen: `${key}: ${resolve(path)}` };
  const remedy = 'set `sampling.taskFiles` to files that exist, one JSON object per line';
  return { name, level: 'fail', seen: `${key}: ${resolve(path)} cannot be read`, remedy };
}

async function isReadable(path: string): Promise<boolean> {
  return access(path, constants.R_OK).then(
    () => true,
    () => false,
  );
}

async function nearestExisting(path: string): Promise<string> {
  for (let folder = resolve(path); ; folder = dirname(folder)) {
    const exists = await access(folder).then(
      () => true,
      () => false,
    );
    if (folder === '/' || exists) return folder;
  }
}

/** `fetch failed` says nothing; what made it fail does. */
function causeOf(error: Error): string {
  return error.cause instanceof Error ? error.cause.message : error.message;
}
