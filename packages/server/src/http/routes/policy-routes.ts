// The policy routes: pause, resume, get. A pause responds once it is stored; with `wait`, once sampling has stopped or the time is
// up.

import { definedOf, type PolicyView, routes } from '@millrace/protocol';
import type { FastifyInstance } from 'fastify';

import { type AppContext, closedSignal } from '../context/context.ts';
import { toPolicyView } from '../context/policy-view.ts';
import { mount } from '../request/mount.ts';

export function mountPolicy(app: FastifyInstance, context: AppContext): void {
  const { store } = context;
  mount(app, routes.getPolicy, () => readPolicyView(context));
  mount(app, routes.pausePolicy, async ({ body: { mode, owner }, query: { wait }, reply }) => {
    await store.pausePolicy({ mode, ...definedOf({ owner }) });
    if (wait > 0) await waitForPause(context, { ms: wait * 1000, signal: closedSignal(reply) });
    return readPolicyView(context);
  });
  mount(app, routes.resumePolicy, async ({ body }) => {
    const { policy_version: policyVersion, caches_flushed: cachesFlushed, allow_lower: allowLower, adapter, owner, force } = body;
    await store.resumePolicy(definedOf({ cachesFlushed, policyVersion, allowLower, adapter, owner, force, saltCaches: body.salt_caches }));
    return readPolicyView(context);
  });
}

/** Waits until the pause is complete or ended by a resume. */
async function waitForPause(
  { store, waiters, clock, draining }: AppContext,
  options: { readonly ms: number; readonly signal: AbortSignal },
) {
  const endsAt = clock.monotonic() + options.ms;
  for (;;) {
    using watch = waiters.watchPolicy();
    const { state } = await store.policy();
    const ms = endsAt - clock.monotonic();
    if (state !== 'pausing' || ms <= 0 || options.signal.aborted || draining.aborted) return;
    await watch.until({ ms, signal: options.signal });
  }
}

async function readPolicyView({ store }: AppContext): Promise<PolicyView> {
  return toPolicyView(await store.policy());
}
