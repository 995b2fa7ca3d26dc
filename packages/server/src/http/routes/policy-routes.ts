// The policy routes: pause, resume, look. A pause is answered when it is in the store; whoever waits is answered when nothing is
// sampled any more, or as it stands when the time is up.

import { type PolicyView, routes } from '@millrace/protocol';
import type { FastifyInstance } from 'fastify';
import { toTime } from '../../store/rollout-view.ts';
import { type Context, closedSignal } from '../context/context.ts';
import { mount } from '../request/mount.ts';

export function mountPolicy(app: FastifyInstance, context: Context): void {
  const { store } = context;
  mount(app, routes.getPolicy, () => viewPolicy(context));
  mount(app, routes.pausePolicy, async ({ body: { mode }, query: { wait }, reply }) => {
    await store.pausePolicy({ mode });
    if (wait > 0) await waitForStill(context, { ms: wait * 1000, signal: closedSignal(reply) });
    return viewPolicy(context);
  });
  mount(app, routes.resumePolicy, async ({ body: { policy_version: policyVersion, caches_flushed: cachesFlushed } }) => {
    await store.resumePolicy({ cachesFlushed, ...(policyVersion === undefined ? {} : { policyVersion }) });
    return viewPolicy(context);
  });
}

/** Until the pause has taken hold, or somebody has ended it. */
async function waitForStill({ store, waiters, clock, draining }: Context, options: { readonly ms: number; readonly signal: AbortSignal }) {
  const endsAt = clock.monotonic() + options.ms;
  for (;;) {
    using watch = waiters.watchPolicy();
    const { state } = await store.policy();
    const ms = endsAt - clock.monotonic();
    if (state !== 'pausing' || ms <= 0 || options.signal.aborted || draining.aborted) return;
    await watch.until({ ms, signal: options.signal });
  }
}

async function viewPolicy({ store }: Context): Promise<PolicyView> {
  const { state, mode, policyVersion, generating, sinceMs } = await store.policy();
  return { state, mode: mode ?? null, policy_version: policyVersion, generating, since: toTime(sinceMs) };
}
