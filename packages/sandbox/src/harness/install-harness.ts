// Installs a harness once on a machine, into a folder of the run folder that sandboxes mount read-only. Its name says what it holds: another
// version is another folder.

import { chmod, mkdir } from 'node:fs/promises';
import { arch } from 'node:os';
import { join } from 'node:path';
import { openFileLock } from '@millrace/base/file-lock';
import { ProgramFailed, runProgram } from '@millrace/base/run-program';
import { definedOf, messageOf, RolloutError } from '@millrace/protocol';
import { makeOnce } from '../run-folder/make-once.ts';
import { bundleLibraries } from './bundle.ts';
import { type Harness, nodePackage } from './harness.ts';
import { addPython } from './python-runtime.ts';

interface InstallOptions {
  /** The run folder of the driver that opens the sandboxes. */
  readonly runDir: string;
  readonly signal?: AbortSignal;
}

const timeoutMs = 900_000;
/** Of the folders below. */
const layoutVersion = 2;
const python = 'python3';

/** Returns the folder, for `harness` of a sandbox's spec. Packages come from the registry that npm or pip is configured for. */
export async function installHarness(spec: Harness, { runDir, signal }: InstallOptions): Promise<string> {
  const content = [layoutVersion, spec.registry, spec.package, spec.version, spec.with, spec.runtime, nodePackage, arch()];
  await mkdir(runDir, { recursive: true, mode: 0o700 });
  await using _lock = await openFileLock(join(runDir, `harness-${spec.name}.lock`), definedOf({ signal }));
  return makeOnce(runDir, { kind: `harness-${spec.name}`, content }, async (scratch) => {
    try {
      if (spec.registry === 'npm') await installNpm(spec, scratch, signal);
      else await installPypi(spec, scratch, signal);
      await runProgram(['chmod', '-R', 'a+rX', '--', scratch]);
      await chmod(scratch, 0o755);
    } catch (error) {
      if (!(error instanceof ProgramFailed)) throw error;
      const what = `${spec.package} ${spec.version} could not be installed from ${spec.registry}`;
      throw new RolloutError('sandbox-start-failed', `${what}: ${messageOf(error)}`, { cause: error });
    }
  });
}

/** Without scripts: nothing of a package runs on this machine. */
async function installNpm(spec: Harness, folder: string, signal: AbortSignal | undefined): Promise<void> {
  const runtime = spec.runtime === 'node' ? [`${nodePackage.name}@${nodePackage.version}`] : [];
  const packages = [`${spec.package}@${spec.version}`, ...spec.with, ...runtime];
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save', '--loglevel=error', '--prefix', folder];
  await runProgram(['npm', 'install', ...flags, ...packages], { timeoutMs, signal });
  if (spec.runtime !== 'node') return;
  const program = `node_modules/${nodePackage.name}/bin/node`;
  await bundleLibraries({ folder, program, start: 'bin/node', loads: ['node_modules'], signal });
}

async function installPypi(spec: Harness, folder: string, signal: AbortSignal | undefined): Promise<void> {
  const site = join(folder, 'python/site');
  const packages = [`${spec.package}==${spec.version}`, ...spec.with];
  const flags = ['--quiet', '--disable-pip-version-check', '--no-compile', '--target', site];
  await runProgram([python, '-m', 'pip', 'install', ...flags, ...packages], { timeoutMs, signal });
  await addPython(python, folder, signal);
}
