// What a sandbox may have under a configuration. The drivers refuse the rest when they open a sandbox, and the API when a task is
// submitted, in the same words.

import { RolloutError, type SandboxMeans } from '@millrace/protocol';
import { type SandboxConfig, type SandboxLimits, sandboxLimits } from './config.ts';
import type { SandboxSpec } from './sandbox.ts';

export interface Granted {
  readonly limits: SandboxLimits;
  readonly network: 'none' | 'host';
  readonly namespaces: 'none' | 'user';
}

/** The limits, network and namespaces of a spec under this configuration. Throws `sandbox-refused` with what is not allowed. */
export function grant(spec: SandboxSpec, config: SandboxConfig): Granted {
  const refusal = findRefusal(spec, toSandboxMeans(config));
  if (refusal !== undefined) throw new RolloutError('sandbox-refused', refusal);
  const { network = config.network, namespaces = 'none' } = spec;
  return { limits: sandboxLimits.parse({ ...config.limits, ...spec.limits }), network, namespaces };
}

/** What sandboxes of this configuration can have, on this machine. */
export function toSandboxMeans({ driver, image, network, allowHostNetwork, allowUserNamespaces }: SandboxConfig): SandboxMeans {
  // Root without capabilities cannot fill in the map of a user namespace.
  const isRootInApptainer = driver === 'apptainer' && process.getuid?.() === 0;
  return {
    driver,
    default_image: image !== undefined,
    network,
    host_network: allowHostNetwork,
    user_namespaces: allowUserNamespaces && !isRootInApptainer,
  };
}

/** Why a sandbox of this spec cannot be opened, and what to change. */
export function findRefusal({ image, network, namespaces, limits }: SandboxSpec, means: SandboxMeans): string | undefined {
  if (image !== undefined && means.driver === 'bubblewrap')
    return `the task asks for the image ${image}, and bubblewrap cannot run images: start the service with --driver apptainer (sandbox.driver)`;
  if (image === undefined && means.driver === 'apptainer' && !means.default_image)
    return 'the task names no image, and sandbox.image is not set: set one of them';
  if ((network ?? means.network) === 'host' && !means.host_network)
    return "the task asks for network 'host', and sandbox.allowHostNetwork is false";
  if (namespaces === 'user' && !means.user_namespaces)
    return means.driver === 'apptainer'
      ? "the task asks for namespaces 'user': set sandbox.allowUserNamespaces, and run the worker as an ordinary user"
      : "the task asks for namespaces 'user', and sandbox.allowUserNamespaces is false";
  const [issue] = limits === undefined ? [] : (someLimits.safeParse(limits).error?.issues ?? []);
  return issue && `the task's limits.${issue.path.join('.')}: ${issue.message}`;
}

/** Made once: a schema for each start would cost more than the check. */
const someLimits = sandboxLimits.partial();
