// What other packages may use of the sandbox package, name by name.

export { openApptainerDriver } from './apptainer/apptainer.ts';
export { probeApptainer } from './apptainer/probe.ts';
export { openBubblewrapDriver } from './bubblewrap/bubblewrap.ts';
export { probeBubblewrap } from './bubblewrap/probe.ts';
export { type Checkpoint, restoreCheckpoint, takeCheckpoint } from './checkpoint/checkpoint.ts';
export { CheckpointBudget } from './checkpoint/checkpoint-budget.ts';
export { CheckpointShelf } from './checkpoint/checkpoint-shelf.ts';
export { Checkpointer } from './checkpoint/checkpointer.ts';
export { leastMemoryMiB, sandboxConfig } from './config.ts';
export { findExecutor } from './executor/executor-files.ts';
export { renderTarHeader, renderTarPadding } from './executor/wire/tar-header.ts';
export { findRefusal, toSandboxMeans } from './grant.ts';
export { harnessCatalog } from './harness/catalog/catalog.ts';
export { HarnessShelf, type InstalledHarness, listHarnesses } from './harness/catalog/harness-shelf.ts';
export { type Harness, harness } from './harness/harness.ts';
export { installHarness } from './harness/install-harness.ts';
export { runHarness } from './harness/run-harness.ts';
export { findApptainer } from './images/apptainer-program.ts';
export { parseDockerfile } from './images/dockerfile/dockerfile.ts';
export { digestFolder } from './images/dockerfile/dockerfile-key.ts';
export { expandWord } from './images/dockerfile/words.ts';
export { type CachedImage, ImageCache } from './images/image-cache.ts';
export { findMissingImage } from './images/image-source.ts';
export { LayerCache } from './layers/layer-cache.ts';
export { holdLayers } from './layers/layer-holding.ts';
export { linkFolder } from './layout.ts';
export { type CgroupBase, controllers, findCgroups } from './limits/cgroups.ts';
export { OwnClock } from './limits/own-clock.ts';
export { findDisturbance, OwnTime, type OwnTimeOptions, toStarved } from './limits/own-time.ts';
export { measureSocketPath, sweepRunFolder } from './run-folder/run-folder.ts';
export type {
  ExecOptions,
  ExecResult,
  FileOptions,
  FolderArchive,
  FolderOptions,
  ListenOptions,
  OpenProgramOptions,
  ProgramOutput,
  PythonImage,
  PythonOptions,
  PythonResult,
  Sandbox,
  SandboxDriver,
  SandboxListener,
  SandboxProgram,
  SandboxSpec,
  ShellResult,
  TransferOptions,
} from './sandbox.ts';
export { idleMiB, openWarmPool } from './warm/warm-pool.ts';
