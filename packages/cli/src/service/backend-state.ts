// What keeps rollouts from making progress, in sentences that say what to do. The service's own hints come first; a service
// that sends none is judged here by its status.

import type { Client } from '@millrace/client';
import type { BackendView, PolicyView, ServiceStatus } from '@millrace/protocol';
import { z } from 'zod';

const ownHints = z.object({ hints: z.array(z.string()) });

/** A backend's state as people see it: a broken one is broken, whether or not it drains. */
export function toBackendState({ state, health }: Pick<BackendView, 'state' | 'health'>): string {
  return health === 'broken' ? 'broken' : state;
}

export function toHints(status: ServiceStatus, policy: PolicyView | undefined): string[] {
  const own = ownHints.safeParse(status);
  return own.success ? own.data.hints : [...workerHints(status), ...backendHints(status), ...policyHints(policy)];
}

/** Reads the policy only when the service sends no hints itself. */
export async function readHints(client: Pick<Client, 'status' | 'policy'>, signal?: AbortSignal): Promise<string[]> {
  const waiting = signal === undefined ? {} : { signal };
  const status = await client.status(waiting);
  if (ownHints.safeParse(status).success) return toHints(status, undefined);
  return toHints(status, await client.policy.get(waiting).catch(() => undefined)); // a hint is lost, not the others
}

function workerHints({ workers }: ServiceStatus): string[] {
  return workers.some(({ alive }) => alive) ? [] : ['No worker is running, so nothing starts. Start one: millrace worker'];
}

function backendHints({ backends }: ServiceStatus): string[] {
  if (backends.length === 0) return ['No backend has joined, so nothing is sampled. Add one: millrace backend add http://127.0.0.1:8000'];
  const usable = backends.filter((backend) => toBackendState(backend) === 'up');
  if (usable.length > 0) return [];
  const [broken] = backends.filter(({ health }) => health === 'broken');
  if (broken === undefined)
    return ['Every backend is draining, so nothing new is sampled. Add one: millrace backend add http://127.0.0.1:8000'];
  const reason = broken.last_error === null ? '' : ` ${broken.id}: ${broken.last_error.message}`;
  return [`No backend works, so nothing is sampled.${reason}`];
}

function policyHints(policy: PolicyView | undefined): string[] {
  if (policy === undefined || policy.state === 'running') return [];
  return [`Sampling is ${policy.state}, so rollouts wait. Continue it: millrace policy resume`];
}
