// Finds what an id on the command line names: the one that has it, or else the only one whose id begins with it.

import type { Client } from '@millrace/client';
import { type BackendView, type BatchView, type EvaluationView, RolloutError, type RolloutView } from '@millrace/protocol';
import { UsageError } from './command.ts';

const mostNamed = 5;

export async function findRollout(client: Client, id: string): Promise<RolloutView> {
  const exact = await client.get(id).catch(ignoreNotFound);
  if (exact !== undefined) return exact;
  const found = await Array.fromAsync(client.list({ prefix: id, limit: mostNamed + 1 }));
  return chooseOnly(found, id, { what: 'rollout', where: 'on this service; to list them: millrace ls' });
}

export async function findBatch(client: Client, id: string): Promise<BatchView> {
  const exact = await client.batches.get(id).catch(ignoreNotFound);
  if (exact !== undefined) return exact;
  const found = await startingWith(client.batches.list(), id);
  return chooseOnly(found, id, { what: 'batch', where: 'on this service; to list them: millrace batch ls' });
}

export async function findEvaluation(client: Client, id: string): Promise<EvaluationView> {
  const exact = await client.evaluations.get(id).catch(ignoreNotFound);
  if (exact !== undefined) return exact;
  const found = await startingWith(client.evaluations.list(), id);
  return chooseOnly(found, id, { what: 'evaluation', where: 'on this service; to list them: millrace eval ls' });
}

/** An address works too: it is what the backend was added with. */
export async function findBackend(client: Client, id: string): Promise<BackendView> {
  const backends = await client.backends.list();
  const address = id.replace(/\/+$/, '').replace(/\/v1$/, '');
  const exact = backends.filter((backend) => backend.id === id || backend.url === address);
  const found = exact.length > 0 ? exact : await startingWith(backends, id);
  return chooseOnly(found, id, { what: 'backend', where: 'on this service; to list them: millrace backend ls' });
}

/** All of them, or an error that names the first that is not there: a command with a wrong id changes nothing. */
export async function findAll<T extends { readonly id: string }>(ids: readonly string[], find: (id: string) => Promise<T>): Promise<T[]> {
  const found = new Map<string, T>();
  for (const id of ids) {
    const one = await find(id);
    found.set(one.id, one);
  }
  return [...found.values()];
}

interface SearchedPlace {
  readonly what: string;
  /** Follows the sentence that nothing was found. */
  readonly where: string;
}

export function chooseOnly<T extends { readonly id: string }>(found: readonly T[], id: string, { what, where }: SearchedPlace): T {
  const [only, ...others] = found;
  if (only === undefined) throw new RolloutError('not-found', `no ${what} is called ${id} or begins with it ${where}`);
  if (others.length === 0) return only;
  const names = found.slice(0, mostNamed).map((one) => one.id);
  const several = what === 'batch' ? 'batches' : `${what}s`;
  throw new UsageError(`${id} is the start of several ${several}: ${names.join(', ')}${found.length > mostNamed ? ', …' : ''}`);
}

async function startingWith<T extends { readonly id: string }>(all: AsyncIterable<T> | Iterable<T>, start: string): Promise<T[]> {
  const found: T[] = [];
  for await (const one of all) if (one.id.startsWith(start)) found.push(one);
  return found;
}

/** For a read that may find nothing. */
export function ignoreNotFound(error: unknown): undefined {
  if (!(error instanceof RolloutError) || error.code !== 'not-found') throw error;
  return undefined;
}
