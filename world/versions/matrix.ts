// The versions of trainers that `npm run test:versions` runs: of each the oldest that its extra allows and the newest, on each Python that it
// supports and that can be had here.

import { join } from 'node:path';

export interface Cell {
  /** The folder in world/trainers, whose test runs. */
  readonly trainer: string;
  readonly package: string;
  readonly version: string;
  /** Such as 3.12. */
  readonly python: string;
  /** Whether it needs PyTorch: that of the vLLM environment, so on its Python only. */
  readonly torch: boolean;
  /** The requirements that are complete but for the version of the trainer; without them pip resolves what it needs. */
  readonly requirements?: string;
  /** Instead of the test of the folder. */
  readonly test?: string;
  /** What pip gets besides the trainer. */
  readonly more?: readonly string[];
}

const trainers = join(import.meta.dirname, '../trainers');
const torchTrainers = join(trainers, 'bed/torch-trainers.txt');
const gateway = join(import.meta.dirname, 'gateway/gateway-claims.ts');

const plain = (trainer: string, packageName: string, versions: readonly string[], pythons: readonly string[]): Cell[] =>
  versions.flatMap((version) => pythons.map((python) => ({ trainer, package: packageName, version, python, torch: false })));
const withTorch = (trainer: string, packageName: string, versions: readonly string[], requirements: string): Cell[] =>
  versions.map((version) => ({ trainer, package: packageName, version, python: '3.11', torch: true, requirements }));

export const matrix: readonly Cell[] = [
  ...plain('openenv', 'openenv', ['0.9.0', '0.10.0'], ['3.11', '3.12']),
  // 0.3.1 has no `resolve_agent`, so the oldest is the newest.
  ...plain('verifiers', 'verifiers', ['0.4.0'], ['3.11', '3.12']),
  ...plain('harbor', 'harbor', ['0.24.0', '0.25.0'], ['3.12']).map((cell) => ({
    ...cell,
    requirements: join(trainers, 'harbor/harbor.txt'),
  })),
  ...plain('nemo-gym', 'nemo-gym', ['0.4.0'], ['3.12', '3.13']),
  ...plain('nemo-gym', 'nemo-gym', ['0.6.0', '0.7.0'], ['3.13']), // 3.13.14 or later
  ...plain('agent-lightning', 'agentlightning', ['0.3.0'], ['3.11', '3.12']),
  ...['1.0.0', '1.0.2'].map(
    (version) => ({ ...plain('agent-lightning', 'agentlightning', [version], ['3.12'])[0], test: gateway }) as Cell,
  ),
  ...withTorch('trl', 'trl', ['1.16.0'], torchTrainers),
  ...withTorch('verl', 'verl', ['0.9.1'], torchTrainers),
  ...withTorch('skyrl', 'skyrl', ['0.3.0'], torchTrainers),
  ...withTorch('tinker', 'tinker-cookbook', ['0.5.8', '0.6.1'], join(trainers, 'tinker/tinker.txt')),
];

export function nameOf({ trainer, version, python }: Cell): string {
  return `${trainer}-${version}-py${python}`;
}
