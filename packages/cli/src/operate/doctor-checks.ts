// The checks of `millrace doctor`: what `millrace serve` checks at its start with the same options, the whole model, and what this
// machine has for many sandboxes. Each says what it saw and, where that is not good, the one line that fixes it. They change nothing.

import { readFile } from 'node:fs/promises';
import { availableParallelism, freemem, totalmem } from 'node:os';
import { findOnPath } from '@millrace/base/find-on-path';
import { messageOf } from '@millrace/protocol';
import { type CgroupBase, controllers, findApptainer, findCgroups, probeApptainer } from '@millrace/sandbox';
import { type Check, checkModel, lookAtBackend, type ModelCheck, runStartChecks } from '@millrace/server';
import type { TokenizerSample } from '@millrace/worker';
import { toBackendFacts } from '../service/backend-facts.ts';
import { toBytes, toCount } from '../terminal/text.ts';
import type { ServeSettings } from './config-options.ts';

export async function runChecks(settings: ServeSettings): Promise<Check[]> {
  const { config, workers, backends } = settings;
  const { tokenizer } = config.model;
  const ofTokenizer: Promise<ModelCheck> = tokenizer === undefined ? Promise.resolve({ check: noTokenizer }) : checkModel(config);
  const [ofStart, ofMachine, ofModel] = await Promise.all([
    runStartChecks(config, { workers: Math.max(1, workers) }),
    checkMachine(config.sandbox.driver, workers),
    ofTokenizer,
  ]);
  const ofBackends = await Promise.all(backends.map((url) => checkBackend(url, ofModel.tokenizer)));
  return [...ofMachine, ...ofStart.filter(({ name }) => name !== 'tokenizer'), ofModel.check, ...ofBackends];
}

/** Not a fault of this machine: the option may follow later. */
const noTokenizer: Check = {
  name: 'tokenizer',
  level: 'warn',
  seen: 'not checked: none was given, and serve needs one',
  remedy: 'millrace doctor --tokenizer FOLDER, the folder with tokenizer.json and tokenizer_config.json of the model',
};

async function checkMachine(driver: 'bubblewrap' | 'apptainer', workers: number): Promise<Check[]> {
  return Promise.all([
    checkNode(process.versions.node),
    checkBash(),
    ...(driver === 'apptainer' ? [] : [checkApptainer()]),
    checkMemory(totalmem(), freemem()),
    checkCores(availableParallelism(), workers),
    checkOpenFiles(await readText('/proc/self/limits')),
    checkLimits(await findCgroups({ enter: false }), process.getuid?.() === 0),
    checkAgentUser(driver, process.getuid?.() === 0),
  ]);
}

export function checkNode(version: string): Check {
  const name = 'Node.js';
  const [major = 0] = version.split('.').map(Number);
  if (major >= 24) return { name, level: 'ok', seen: version };
  return { name, level: 'fail', seen: `${version}, and Millrace runs on 24`, remedy: 'npm install millrace brings Node.js 24 along' };
}

/** Agents work in it. */
async function checkBash(): Promise<Check> {
  const path = findOnPath(['bash']);
  if (path !== undefined) return { name: 'bash', level: 'ok', seen: path };
  return { name: 'bash', level: 'fail', seen: 'not found; agents work in it', remedy: 'sudo apt-get install -y bash' };
}

/** Where sandboxes run on bubblewrap, an Apptainer that is installed but broken is worth a warning. */
async function checkApptainer(): Promise<Check> {
  const name = 'apptainer';
  const probe = await probeApptainer();
  if (probe.ok) return { name, level: 'ok', seen: `${probe.version}, starts a sandbox as this user` };
  if (findApptainer() === undefined) return { name, level: 'ok', seen: 'not installed, and not needed: sandboxes run on bubblewrap' };
  return { name, level: 'warn', seen: probe.reason, remedy: probe.remedy };
}

export function checkMemory(total: number, free: number): Check {
  const name = 'memory';
  const seen = `${toBytes(free)} free of ${toBytes(total)}`;
  if (total >= 2 * 2 ** 30) return { name, level: 'ok', seen };
  return { name, level: 'warn', seen, remedy: 'run fewer workers (--workers 1) and fewer run slots (`pipeline.runSlots`)' };
}

function checkCores(cores: number, workers: number): Check {
  return { name: 'cores', level: 'ok', seen: `${cores}; serve starts ${workers} ${workers === 1 ? 'worker' : 'workers'}` };
}

/** Every running rollout holds a few files: its socket, its terminal, a connection. */
export function checkOpenFiles(limits: string | undefined): Check {
  const name = 'open files';
  const [, soft, hard] = /^Max open files\s+(\S+)\s+(\S+)/m.exec(limits ?? '') ?? [];
  if (soft === undefined)
    return { name, level: 'warn', seen: 'the limit could not be read', remedy: 'ulimit -n shows it; 65536 is plenty' };
  const seen = Number.isNaN(Number(soft)) ? soft : toCount(Number(soft));
  if (soft === 'unlimited' || Number(soft) >= 4096) return { name, level: 'ok', seen };
  const wanted = hard === 'unlimited' ? 65_536 : Math.min(65_536, Number(hard));
  return { name, level: 'warn', seen: `${seen}, few for many sandboxes`, remedy: `ulimit -n ${wanted}` };
}

/** What holds a sandbox to its limits: control groups, or rlimits of its single processes. */
export function checkLimits(bases: readonly CgroupBase[], isRoot: boolean): Check {
  const name = 'sandbox limits';
  const grouped = controllers.filter((controller) => bases.some((base) => base.controller === controller));
  const single = controllers.filter((controller) => !grouped.includes(controller));
  const versions = [...new Set(bases.map(({ version }) => `v${version}`))].join(' and ');
  const kept = grouped.length === 0 ? [] : [`${grouped.join(', ')} by cgroups ${versions}`];
  const always = 'open files by rlimits, disk by its size';
  if (single.length === 0) return { name, level: 'ok', seen: [...kept, always].join('; ') };
  const ways = {
    cpu: 'cpu is not limited',
    memory: 'memory of each process by rlimits, of a sandbox by a check every second, of socket and pipe buffers not at all',
    pids: isRoot ? 'pids are not limited' : 'pids by rlimits',
  };
  const remedy = 'systemd-run --user --scope -p Delegate=yes millrace serve';
  return { name, level: 'warn', seen: [...kept, ...single.map((controller) => ways[controller]), always].join('; '), remedy };
}

/** Who the agent is on this machine, should it get out of its sandbox. */
export function checkAgentUser(driver: 'bubblewrap' | 'apptainer', isRoot: boolean): Check {
  const name = 'agents';
  if (!isRoot) return { name, level: 'ok', seen: 'run as this user, without capabilities' };
  if (driver === 'bubblewrap') return { name, level: 'ok', seen: 'run as a user that owns nothing' };
  const seen = 'run as root, without capabilities: this process is root, and Apptainer keeps the user';
  return { name, level: 'warn', seen, remedy: 'run millrace serve as an ordinary user' };
}

/** What a join would find. */
async function checkBackend(url: string, tokenizer: TokenizerSample | undefined): Promise<Check> {
  const name = 'backend';
  try {
    const backend = await lookAtBackend(url, tokenizer);
    const facts = toBackendFacts(backend).map(([fact, text]) => `${fact} ${text}`);
    const seen = `${backend.url}: ${facts.join('; ')}`;
    if (backend.probe?.tokenizer !== 'different') return { name, level: 'ok', seen };
    return { name, level: 'warn', seen, remedy: 'set --tokenizer to the files of the model that this server serves' };
  } catch (error) {
    return { name, level: 'warn', seen: `${url} cannot be used: ${messageOf(error)}`, remedy: 'start the LLM server, or fix the address' };
  }
}

async function readText(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined);
}
