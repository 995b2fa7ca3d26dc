// Builds an image from a Dockerfile, without Docker and without root: each stage is an unpacked directory, files are copied by this process,
// and programs run in it under Apptainer. The result is complete or absent.

import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { runProgram } from '@millrace/base/run-program';
import { definedOf, RolloutError } from '@millrace/protocol';
import { removeTree } from '../../run-folder/remove-tree.ts';
import { copyFiles } from './copy-files.ts';
import { type DockerInstruction, parseDockerfile, readJsonForm, refuseLine } from './dockerfile.ts';
import { type ImageFacts, readFacts, writeFacts } from './image-facts.ts';
import { makeFolderInside, resolveInside, resolveNew } from './inside-root.ts';
import { parseIgnore } from './match-path.ts';
import { runStep, takeOwnership } from './run-step.ts';
import { type BuildStage, builtInArguments, findStage, planStages, readArguments, type StagePlan } from './stages.ts';
import { expandWord, readPairs, splitWords, type Variables } from './words.ts';

interface BaseImage extends AsyncDisposable {
  /** A SIF file or an unpacked directory. */
  readonly path: string;
}

interface DockerfileBuild {
  /** Its folder is the context. */
  readonly path: string;
  /** Where the image is made; does not exist yet. */
  readonly target: string;
  /** An empty folder on the same disk. */
  readonly scratch: string;
  readonly apptainerPath: string;
  /** Opens the image of a FROM or a `COPY --from`. */
  openBase(name: string): Promise<BaseImage>;
  readonly signal?: AbortSignal | undefined;
  /** Receives what is done, and what programs print. */
  onText(text: string): void;
}

/** A sandbox has its own disk there, so files of the image are kept elsewhere, and copied when a scenario prepares the sandbox. */
const workspace = '/workspace';
const keptWorkspace = '/.singularity.d/workspace';

/** Throws `sandbox-refused` or `sandbox-start-failed`, with file and line. */
export async function buildDockerfile(build: DockerfileBuild): Promise<void> {
  const { path } = build;
  const plan = planStages(parseDockerfile(await readFile(path, 'utf8'), path), path);
  const ignores = await readIgnore(path);
  const roots = new Map<number, string>();
  for (const stage of plan.stages) {
    const root = join(build.scratch, `stage-${stage.index}`);
    roots.set(stage.index, root);
    await new StageBuild({ build, plan, stage, root, roots, ignores }).run();
  }
  const last = roots.get(plan.stages.at(-1)?.index ?? 0) ?? '';
  await rename(last, build.target);
}

async function readIgnore(path: string): Promise<(path: string) => boolean> {
  const names = [`${path}.dockerignore`, join(dirname(path), '.dockerignore')];
  for (const name of names) {
    const text = await readFile(name, 'utf8').catch(() => undefined); // there is none
    if (text !== undefined) return parseIgnore(text);
  }
  return () => false;
}

interface StageOptions {
  readonly build: DockerfileBuild;
  readonly plan: StagePlan;
  readonly stage: BuildStage;
  readonly root: string;
  /** Of all stages so far, by index. */
  readonly roots: ReadonlyMap<number, string>;
  ignores(path: string): boolean;
}

class StageBuild {
  readonly #options: StageOptions;
  #facts: ImageFacts = { env: {}, workdir: '/', user: 'root', notes: [] };
  #arguments: Record<string, string> = {};
  #shell: readonly string[] = ['/bin/sh', '-c'];

  constructor(options: StageOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const { stage, root, build } = this.#options;
    await this.#at(stage.from, () => this.#start());
    try {
      for (const [index, step] of stage.steps.entries()) {
        build.signal?.throwIfAborted();
        build.onText(`[${index + 1}/${stage.steps.length}] ${step.name} ${step.text.slice(0, 100)}\n`);
        await this.#at(step, () => this.#take(step));
      }
    } finally {
      await takeOwnership(root);
    }
    await this.#keepWorkspace();
    await writeFacts(root, this.#facts);
  }

  /** Adds file and line to an error. */
  async #at<T>(step: DockerInstruction, work: () => Promise<T>): Promise<T> {
    const { path } = this.#options.build;
    return work().catch((error) => {
      if (!(error instanceof RolloutError) || error.message.startsWith(`${path}:`)) throw error;
      throw new RolloutError(error.code, `${path}:${step.line}: ${step.name} ${step.text.slice(0, 80)}: ${error.message}`, {
        cause: error,
      });
    });
  }

  async #start(): Promise<void> {
    const { stage, root, roots, build } = this.#options;
    await mkdir(root, { mode: 0o755 });
    if (stage.base.kind === 'stage') await copyRoot(roots.get(stage.base.index) ?? '', root);
    if (stage.base.kind === 'image') {
      await using base = await build.openBase(stage.base.name);
      await this.#unpackBase(base.path);
    }
    for (const name of ['dev', 'etc', 'proc', 'root', 'run', 'sys', 'tmp', 'var/tmp', '.singularity.d/libs'])
      await makeFolderInside(root, name);
    // Apptainer mounts files of the machine over them while programs run.
    for (const name of ['etc/hosts', 'etc/resolv.conf', 'etc/passwd', 'etc/group']) {
      const file = await resolveInside(root, name);
      if (!(await stat(file).catch(() => undefined))) await writeFile(await resolveNew(root, name), '').catch(() => {}); // a broken link stays
    }
    this.#facts = { ...(await readFacts(root)) };
    const kept = join(root, keptWorkspace);
    if (await stat(kept).catch(() => undefined)) {
      await removeTree(join(root, workspace));
      await rename(kept, join(root, workspace));
    }
  }

  async #unpackBase(path: string): Promise<void> {
    const { root, build } = this.#options;
    const isFolder = (await stat(path)).isDirectory();
    if (isFolder) return await copyRoot(path, root);
    await rm(root, { recursive: true });
    await runProgram([build.apptainerPath, '--silent', 'build', '--sandbox', root, path], { signal: build.signal });
  }

  async #take(step: DockerInstruction): Promise<void> {
    const { text } = step;
    switch (step.name) {
      case 'RUN':
        return await this.#run(step);
      case 'COPY':
      case 'ADD':
        return await this.#copy(step);
      case 'ENV':
        this.#facts.env = { ...this.#facts.env, ...Object.fromEntries(readPairs(text, this.#variables())) };
        return;
      case 'ARG':
        this.#arguments = pick(readArguments([step], { ...this.#givenTo(step), ...this.#variables() }), [
          ...Object.keys(this.#arguments),
          ...namesOf(step),
        ]);
        return;
      case 'WORKDIR':
        this.#facts.workdir = posix.resolve(this.#facts.workdir, this.#expand(text));
        await makeFolderInside(this.#options.root, this.#facts.workdir);
        return;
      case 'USER':
        this.#facts.user = this.#expand(text).split(':')[0] ?? 'root';
        return;
      case 'SHELL':
        this.#shell = this.#readShell(step);
        return;
      case 'VOLUME':
        for (const folder of readJsonForm(text) ?? splitWords(text, this.#variables())) await makeFolderInside(this.#options.root, folder);
        return;
      default:
        this.#facts.notes = [...this.#facts.notes, `${step.name} ${text}`.slice(0, 200)];
    }
  }

  #variables(): Variables {
    return { ...this.#arguments, ...this.#facts.env };
  }

  /** `ARG NAME` without a default takes the value from before the first FROM. */
  #givenTo(step: DockerInstruction): Variables {
    return pick({ ...builtInArguments, ...this.#options.plan.globals }, namesOf(step));
  }

  #expand(text: string): string {
    return expandWord(text, this.#variables());
  }

  #readShell(step: DockerInstruction): string[] {
    const shell = readJsonForm(step.text);
    if (!shell?.length) throw refuseLine({ path: this.#options.build.path, line: step.line }, 'SHELL needs a JSON array');
    return shell;
  }

  async #run(step: DockerInstruction): Promise<void> {
    const { build, root } = this.#options;
    const argv = readJsonForm(step.text) ?? [...this.#shell, toScript(step)];
    const { workdir, env } = this.#facts;
    const { apptainerPath, signal, onText } = build;
    const home = env.HOME ?? '/root';
    await runStep({ apptainerPath, root, argv, cwd: workdir, env: { HOME: home, ...this.#variables() }, signal, onText });
  }

  async #copy(step: DockerInstruction): Promise<void> {
    const { build, root, stage, plan, roots, ignores } = this.#options;
    const words = readJsonForm(step.text)?.map((word) => this.#expand(word)) ?? splitWords(step.text, this.#variables());
    const [target, ...sources] = words.toReversed();
    if (target === undefined || sources.length === 0) throw new RolloutError('sandbox-refused', `${step.name} needs a source and a target`);
    const url = sources.find((source) => /^(https?|git|ssh):\/\/|^git@/.test(source));
    if (url !== undefined) throw new RolloutError('sandbox-refused', `ADD of ${url} is not supported: download it with RUN`);
    const [mode] = step.flags.chmod ?? [];
    const absolute = posix.resolve(this.#facts.workdir, target) + (target.endsWith('/') || target === '.' ? '/' : '');
    const unpacks = step.name === 'ADD';
    const shape = {
      root,
      target: absolute,
      unpacks,
      signal: build.signal,
      ...definedOf({ mode: mode === undefined ? undefined : Number.parseInt(mode, 8) }),
    };
    const documents = sources.filter((source) => source.startsWith('<<'));
    for (const { name, content, expands } of step.documents) {
      const text = expands ? content.replace(/\$\{?\w+\}?/g, (found) => this.#expand(found)) : content;
      const file = await resolveNew(root, absolute.endsWith('/') ? posix.join(absolute, name) : absolute);
      await writeFile(file, text, { mode: shape.mode ?? 0o644 });
    }
    const paths = sources.filter((source) => !documents.includes(source)).toReversed();
    if (paths.length === 0) return;
    const [from] = step.flags.from ?? [];
    if (from === undefined) return await copyFiles({ ...shape, from: dirname(build.path), sources: paths, ignores });
    const other = findStage(
      plan.stages.filter(({ index }) => index < stage.index),
      this.#expand(from),
    );
    const none = () => false;
    if (other) return await copyFiles({ ...shape, from: roots.get(other.index) ?? '', sources: paths, ignores: none });
    await using image = await build.openBase(this.#expand(from));
    if (!(await stat(image.path)).isDirectory())
      throw new RolloutError('sandbox-refused', `COPY --from=${from}: a SIF file cannot be read: unpack it`);
    await copyFiles({ ...shape, from: image.path, sources: paths, ignores: none });
  }

  async #keepWorkspace(): Promise<void> {
    const { root } = this.#options;
    const folder = join(root, workspace);
    const names = await readdir(folder).catch(() => []); // there is none
    if (names.length === 0) return;
    await makeFolderInside(root, '/.singularity.d');
    await rename(folder, join(root, keptWorkspace));
    await mkdir(folder);
  }
}

async function copyRoot(from: string, to: string): Promise<void> {
  await runProgram(['cp', '--archive', '--reflink=auto', '--no-preserve=ownership', '--', `${from}/.`, to]);
}

function namesOf({ text }: DockerInstruction): string[] {
  return splitWords(text, {}).map((word) => word.split('=')[0] ?? '');
}

function pick(values: Variables, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => (values[name] === undefined ? [] : [[name, values[name]]])));
}

/** A command with a here-document is a script that the shell reads as it is; a here-document alone is the script. */
function toScript({ text, documents }: DockerInstruction): string {
  const [only] = documents;
  if (only && /^<<-?["']?\w+["']?$/.test(text)) {
    if (only.content.startsWith('#!'))
      throw new RolloutError('sandbox-refused', 'a here-document with its own interpreter is not supported');
    return only.content;
  }
  return [text, ...documents.flatMap(({ name, content }) => [content.replace(/\n$/, ''), name])].join('\n');
}
