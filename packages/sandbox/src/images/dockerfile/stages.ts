// The stages of a Dockerfile: which there are, what each starts from, and which the last one needs. The others are not built.

import { type DockerInstruction, refuseLine } from './dockerfile.ts';
import { expandWord, splitWords, type Variables } from './words.ts';

export interface BuildStage {
  readonly index: number;
  /** Lower case, as names are compared; the index if it has none. */
  readonly name: string;
  readonly from: DockerInstruction;
  /** `scratch`, the index of an earlier stage, or the name of an image. */
  readonly base:
    | { readonly kind: 'scratch' }
    | { readonly kind: 'stage'; readonly index: number }
    | { readonly kind: 'image'; readonly name: string };
  readonly steps: readonly DockerInstruction[];
}

export interface StagePlan {
  /** In the order in which they are built; the last is the image. */
  readonly stages: readonly BuildStage[];
  /** ARG before the first FROM: a stage sees them if it declares them again. */
  readonly globals: Variables;
}

const platform = { TARGETOS: 'linux', BUILDOS: 'linux', TARGETARCH: toArchitecture(), BUILDARCH: toArchitecture() };
export const builtInArguments: Variables = {
  ...platform,
  TARGETPLATFORM: `linux/${platform.TARGETARCH}`,
  BUILDPLATFORM: `linux/${platform.TARGETARCH}`,
};

function toArchitecture(): string {
  return process.arch === 'x64' ? 'amd64' : process.arch;
}

export function planStages(instructions: readonly DockerInstruction[], path: string): StagePlan {
  const first = instructions.findIndex(({ name }) => name === 'FROM');
  const globals = readArguments(instructions.slice(0, first), builtInArguments);
  const all: BuildStage[] = [];
  for (let at = first; at < instructions.length; ) {
    const from = instructions[at];
    if (from === undefined) break;
    const next = instructions.findIndex(({ name }, index) => index > at && name === 'FROM');
    const end = next < 0 ? instructions.length : next;
    all.push(toStage(from, instructions.slice(at + 1, end), { before: all, globals, path }));
    at = end;
  }
  const needed = new Set<number>();
  const add = (index: number) => {
    const stage = all[index];
    if (stage === undefined || needed.has(index)) return;
    needed.add(index);
    if (stage.base.kind === 'stage') add(stage.base.index);
    for (const { flags } of stage.steps) {
      const other = flags.from?.[0] === undefined ? undefined : findStage(all.slice(0, index), flags.from[0]);
      if (other) add(other.index);
    }
  };
  add(all.length - 1);
  return { stages: all.filter(({ index }) => needed.has(index)), globals };
}

export function findStage(stages: readonly BuildStage[], name: string): BuildStage | undefined {
  return stages.findLast((stage) => stage.name === name.toLowerCase() || String(stage.index) === name);
}

/** The values of `ARG NAME=default`; one without a default and a value is not set. */
export function readArguments(instructions: readonly DockerInstruction[], given: Variables): Record<string, string> {
  const values: Record<string, string> = { ...given };
  for (const { text } of instructions) {
    for (const word of splitWords(text, values)) {
      const at = word.indexOf('=');
      const name = at < 0 ? word : word.slice(0, at);
      if (at >= 0 && values[name] === undefined) values[name] = word.slice(at + 1);
    }
  }
  return values;
}

interface StageContext {
  readonly before: readonly BuildStage[];
  readonly globals: Variables;
  readonly path: string;
}

function toStage(from: DockerInstruction, steps: readonly DockerInstruction[], { before, globals, path }: StageContext): BuildStage {
  const index = before.length;
  const [, source = '', alias] = /^(\S+)(?:\s+AS\s+(\S+))?$/i.exec(from.text) ?? [];
  const name = expandWord(source, globals);
  if (name === '') throw refuseLine({ path, line: from.line }, `FROM ${from.text} names no image, or needs an ARG without a value`);
  const earlier = findStage(before, name);
  const base =
    name.toLowerCase() === 'scratch'
      ? ({ kind: 'scratch' } as const)
      : earlier === undefined
        ? ({ kind: 'image', name } as const)
        : ({ kind: 'stage', index: earlier.index } as const);
  return { index, name: (alias ?? String(index)).toLowerCase(), from, base, steps };
}
