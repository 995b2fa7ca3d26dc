// Refuses tasks whose sandbox no machine of the service can open, before anything is sampled: an image without Apptainer, a network or
// namespaces that the configuration forbids, a limit out of range, an image file that does not exist.

import { findRefusal, type SandboxSpec } from '@millrace/sandbox';
import { type Scenario, sandboxesOf } from '@millrace/scenarios';
import type { AppContext } from '../context/context.ts';
import { toFault, toFaultError } from '../request/check.ts';

interface ParsedTask {
  readonly scenario: Scenario;
  /** As it was sent, to find the field at fault. */
  readonly sent: unknown;
  /** As the scenario's schema parsed it. */
  readonly task: unknown;
  readonly at: readonly PropertyKey[];
}

/** Throws `task-invalid`. A `sandbox` function that throws is left to the worker, which says whose fault it is. */
export async function refuseSandbox({ scenario, sent, task, at }: ParsedTask, context: AppContext): Promise<void> {
  const specs = await sandboxesOf(scenario, task).catch(() => []);
  for (const spec of specs) {
    const fault = await findSandboxFault(spec, context);
    if (fault !== undefined) throw toFaultError([toFault([...at, ...pathOf(spec.image, sent)], fault)], { code: 'task-invalid' });
  }
}

/** The settings of this server usually count for all machines; those of a machine are asked only if these refuse. */
async function findSandboxFault(spec: SandboxSpec, { sandboxes, status }: AppContext): Promise<string | undefined> {
  const refusal = findRefusal(spec, sandboxes.means);
  if (refusal === undefined) return await sandboxes.findMissingImage(spec.image);
  const { machines = [] } = await status.read();
  const others = machines.flatMap((machine) => (machine.state === 'live' && machine.sandboxes ? [machine.sandboxes] : []));
  return others.some((means) => findRefusal(spec, means) === undefined) ? undefined : refusal;
}

/** The top-level field that holds the name of the image, if one does. */
function pathOf(image: string | undefined, sent: unknown): string[] {
  if (image === undefined || typeof sent !== 'object' || sent === null) return [];
  const found = Object.entries(sent).find(([, value]) => value === image);
  return found ? [found[0]] : [];
}
