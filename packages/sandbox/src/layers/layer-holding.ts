// A driver whose sandboxes hold a lease of their layer until they are closed, so that the layer is not removed under them.

import { RolloutError } from '@millrace/protocol';
import type { OpenOptions, Sandbox, SandboxDriver, SandboxSpec } from '../sandbox.ts';
import type { LayerCache } from './layer-cache.ts';

export function holdLayers(driver: SandboxDriver, layers: LayerCache): SandboxDriver {
  return { ...driver, open: (spec, options) => openHolding({ driver, layers }, spec, options) };
}

async function openHolding(
  { driver, layers }: { readonly driver: SandboxDriver; readonly layers: LayerCache },
  spec: SandboxSpec,
  options: OpenOptions | undefined,
): Promise<Sandbox> {
  if (spec.layer === undefined) return await driver.open(spec, options);
  const lease = layers.hold(spec.layer);
  if (!lease) throw new RolloutError('sandbox-start-failed', `the layer ${spec.layer} has no lease any more`);
  try {
    const sandbox = await driver.open(spec, options);
    const close = async () => {
      await sandbox[Symbol.asyncDispose]();
      await lease[Symbol.asyncDispose]();
    };
    return { ...sandbox, [Symbol.asyncDispose]: close };
  } catch (error) {
    await lease[Symbol.asyncDispose]();
    throw error;
  }
}
