// Reads a Dockerfile: its instructions with their lines, flags and here-documents. An instruction that no build here can carry out is
// refused with file and line.

import { messageOf, RolloutError, tryJson } from '@millrace/protocol';

const instructionNames = [
  ...['FROM', 'RUN', 'COPY', 'ADD', 'WORKDIR', 'ENV', 'ARG', 'USER', 'SHELL'],
  ...['EXPOSE', 'LABEL', 'CMD', 'ENTRYPOINT', 'VOLUME', 'STOPSIGNAL', 'HEALTHCHECK', 'MAINTAINER'],
] as const;
type InstructionName = (typeof instructionNames)[number];

export interface DockerInstruction {
  readonly name: InstructionName;
  /** The line on which it starts. */
  readonly line: number;
  /** Such as `from` of `--from=build`. A flag without a value is empty. */
  readonly flags: Readonly<Record<string, readonly string[]>>;
  /** What follows the flags, with continued lines joined. */
  readonly text: string;
  readonly documents: readonly HereDocument[];
}

interface HereDocument {
  readonly name: string;
  readonly content: string;
  /** Whether variables are replaced, as they are unless the name is quoted. */
  readonly expands: boolean;
}

/** Throws `sandbox-refused`: `tasks/x/environment/Dockerfile:7: …`. */
export function parseDockerfile(text: string, path: string): DockerInstruction[] {
  const lines = text.replace(/^\ufeff/, '').split(/\r?\n/);
  const mark = readEscape(lines);
  const instructions: DockerInstruction[] = [];
  for (let at = 0; at < lines.length; ) {
    if (isSkipped(lines[at] ?? '')) {
      at += 1;
      continue;
    }
    const start = at;
    const joined = joinLines(lines, at, mark);
    const found = joined.text.includes('<<') ? readDocuments(lines, joined) : { documents: [], next: joined.next };
    at = found.next;
    const fail = (message: string) => refuseLine({ path, line: start + 1 }, message);
    instructions.push(toInstruction(joined.text, { line: start + 1, documents: found.documents, fail }));
  }
  const first = instructions.find(({ name }) => name !== 'ARG');
  if (first?.name !== 'FROM') throw refuseLine({ path, line: first?.line ?? 1 }, 'a Dockerfile starts with FROM');
  return instructions;
}

interface LinePlace {
  readonly path: string;
  readonly line: number;
}

export function refuseLine({ path, line }: LinePlace, message: string): RolloutError {
  return new RolloutError('sandbox-refused', `${path}:${line}: ${message}`);
}

/** The strings of an instruction in JSON form, such as `["python3", "-m", "http.server"]`; absent for any other form. */
export function readJsonForm(text: string): string[] | undefined {
  if (!text.startsWith('[')) return undefined;
  const value = tryJson(text); // undefined for a shell command that starts with a bracket
  return Array.isArray(value) && value.every((one) => typeof one === 'string') ? value : undefined;
}

function readEscape(lines: readonly string[]): string {
  for (const line of lines) {
    const [, key, value] = /^#\s*(\w+)\s*=\s*(\S+)\s*$/.exec(line) ?? [];
    if (key === undefined) return '\\';
    if (key.toLowerCase() === 'escape' && value !== undefined) return value;
  }
  return '\\';
}

function isSkipped(line: string): boolean {
  return /^\s*(#|$)/.test(line);
}

interface Joined {
  readonly text: string;
  /** The index of the first line that is not part of it. */
  readonly next: number;
}

/** Comments and empty lines between continued lines are left out. */
function joinLines(lines: readonly string[], start: number, mark: string): Joined {
  const ending = mark === '`' ? /`[ \t]*$/ : /\\[ \t]*$/;
  let text = '';
  let at = start;
  for (; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    if (at > start && isSkipped(line)) continue;
    if (!ending.test(line)) return { text: text + line, next: at + 1 };
    text += line.replace(ending, '');
  }
  return { text, next: at };
}

function readDocuments(lines: readonly string[], { text, next }: Joined): { documents: HereDocument[]; next: number } {
  if (!/^\s*(RUN|COPY|ADD)\b/i.test(text)) return { documents: [], next };
  const documents: HereDocument[] = [];
  let at = next;
  for (const [, dash, quote = '', name = ''] of text.matchAll(/(?:^|\s)<<(-?)(["']?)([A-Za-z_]\w*)\2(?=\s|$)/g)) {
    const body: string[] = [];
    const strip = (line: string) => (dash === '-' ? line.replace(/^\t+/, '') : line);
    while (at < lines.length && strip(lines[at] ?? '') !== name) body.push(strip(lines[at++] ?? ''));
    at += 1;
    documents.push({ name, content: body.map((line) => `${line}\n`).join(''), expands: quote === '' });
  }
  return { documents, next: at };
}

interface InstructionReading {
  readonly line: number;
  readonly documents: readonly HereDocument[];
  fail(message: string): RolloutError;
}

const unsupported: Readonly<Record<string, string>> = {
  ONBUILD: 'it would run in another build: write its instruction into the Dockerfiles that start from this image',
};

function toInstruction(source: string, { line, documents, fail }: InstructionReading): DockerInstruction {
  const [, word = '', after = ''] = /^\s*(\S+)\s*(.*)$/s.exec(source) ?? [];
  const name = instructionNames.find((one) => one === word.toUpperCase());
  if (name === undefined) {
    const known = unsupported[word.toUpperCase()];
    throw fail(known === undefined ? `unknown instruction ${word}` : `${word.toUpperCase()} is not supported: ${known}`);
  }
  const flags: Record<string, string[]> = {};
  let text = after.trim();
  for (let found = readFlag(name, text); found; found = readFlag(name, text)) {
    flags[found.name] = [...(flags[found.name] ?? []), found.value];
    text = text.slice(found.length).trim();
  }
  try {
    refuseFlags(name, flags);
  } catch (error) {
    throw fail(messageOf(error));
  }
  if (text === '' && name !== 'HEALTHCHECK') throw fail(`${name} needs an argument`);
  return { name, line, flags, text, documents };
}

function readFlag(name: InstructionName, text: string): { name: string; value: string; length: number } | undefined {
  if (!/^(FROM|RUN|COPY|ADD|HEALTHCHECK)$/.test(name)) return undefined;
  const [whole, flag, value = ''] = /^--([a-z][\w-]*)(?:=(\S*))?(?=\s|$)/.exec(text) ?? [];
  return whole === undefined || flag === undefined ? undefined : { name: flag, value, length: whole.length };
}

/** `chown` has no effect, since a sandbox has one user; `link` only changes how Docker caches. */
const knownFlags: Readonly<Partial<Record<InstructionName, readonly string[]>>> = {
  FROM: ['platform'],
  RUN: ['mount', 'network'],
  COPY: ['from', 'chown', 'chmod', 'link'],
  ADD: ['chown', 'chmod', 'link'],
};

function refuseFlags(name: InstructionName, flags: Readonly<Record<string, readonly string[]>>): void {
  if (name === 'HEALTHCHECK') return;
  const unknown = Object.keys(flags).find((flag) => !knownFlags[name]?.includes(flag));
  if (unknown !== undefined) throw new Error(`${name} --${unknown} is not supported`);
  for (const mount of flags.mount ?? [])
    if (!/(^|,)type=(cache|tmpfs)(,|$)/.test(mount))
      throw new Error(`RUN --mount=${mount} is not supported: only caches are, and are not kept`);
  for (const network of flags.network ?? []) if (network !== 'default') throw new Error(`RUN --network=${network} is not supported`);
  for (const mode of flags.chmod ?? []) if (!/^[0-7]{3,4}$/.test(mode)) throw new Error(`--chmod=${mode} is not an octal mode`);
}
