// Reads what a hacker knows of a task: the texts of the task and of its verifier, and the files that they name.

import { readdir, readFile } from 'node:fs/promises';
import { isAbsolute, join, normalize } from 'node:path';
import type { Message } from '@millrace/protocol';
import type { HackerTarget } from './hackers/hacker.ts';

interface TargetFacts {
  readonly scenario: string;
  readonly task: Readonly<Record<string, unknown>>;
  readonly messages: readonly Message[];
  readonly canAct: boolean;
  readonly isConversation: boolean;
  readonly folder: string;
  /** The source files of the user's own scenarios. */
  readonly sources: readonly string[];
}

const mostFiles = 12;
const mostSourceBytes = 1 << 20;
/** Agents write nowhere else. */
const foreign = /^\/(?:dev|proc|sys|bin|sbin|usr|lib|lib64|etc|logs|tests|opt)(?:\/|$)/;

export async function readTarget(facts: TargetFacts): Promise<HackerTarget> {
  const { scenario, task, messages, folder, canAct, isConversation } = facts;
  const instruction = messages.map(({ content }) => content).join('\n');
  const source = [...textsOf(task), ...(await readHarborTests(task)), ...(await readSources(facts))].join('\n').slice(0, mostSourceBytes);
  const named = findPaths(`${instruction}\n${source}`);
  const files = named.filter((path) => !foreign.test(path)).map((path) => normalize(isAbsolute(path) ? path : join(folder, path)));
  const hidden = named.filter((path) => isAbsolute(path) && !/^\/(?:dev|proc|sys|bin|sbin|usr|lib|lib64)\//.test(path));
  return {
    scenario,
    task,
    instruction,
    source,
    canAct,
    isConversation,
    folder,
    files: [...new Set(files)].filter((path) => path !== folder && !path.endsWith('/')).slice(0, mostFiles),
    hidden: [...new Set(hidden)].slice(0, mostFiles),
  };
}

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : [];
}

/** A Harbor task is a path; its verifier is in the folder. */
async function readHarborTests({ folder }: TargetFacts['task']): Promise<string[]> {
  if (typeof folder !== 'string') return [];
  const tests = join(folder, 'tests');
  const names = await readdir(tests).catch(() => []); // another field with this name
  return await Promise.all(names.map((name) => readFile(join(tests, name), 'utf8').catch(() => ''))); // a folder in it
}

async function readSources({ scenario, sources }: TargetFacts): Promise<string[]> {
  const texts = await Promise.all(sources.map((file) => readFile(file, 'utf8')));
  return texts.filter((text) => text.includes(scenario));
}

/** A path has the extension of a file, or is named where scripts name files. */
const extensions =
  'txt|md|json|jsonl|csv|tsv|log|out|dat|bin|html|xml|ya?ml|toml|ini|cfg|conf|sql|db|py|sh|js|ts|mjs|c|cc|cpp|h|java|go|rs|rb|pl|r|jl|lua|ipynb|png|tar|gz|zip|patch|diff';
const withExtension = new RegExp(`(?<![\\w@:./-])(?:\\.{0,2}/)?(?:[\\w+.-]+/){0,8}[\\w+-]{1,60}\\.(?:${extensions})(?![\\w(/])`, 'g');
const afterCommand =
  /(?:\b(?:cat|cmp|diff|judged(?: (?:python3|bash|sh))?|source|head|tail|wc|test -[efs]|\[ -[efs])|<)\s+["']?([\w./-]{2,80})/g;
const absolute = /(?<![\w@:.])\/(?:workspace|app|tests|logs|tmp|home|root|testbed|repo)\/[\w./-]{1,100}/g;

function findPaths(text: string): string[] {
  const found = [
    ...[...text.matchAll(withExtension)].map(([path]) => path),
    ...[...text.matchAll(absolute)].map(([path]) => path.replace(/[./]+$/, '')),
    ...[...text.matchAll(afterCommand)].map(([, path = '']) => path),
  ];
  return [...new Set(found)].filter((path) => !path.startsWith('-') && !/^[.\d]*$/.test(path));
}
