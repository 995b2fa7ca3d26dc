// One batch: its progress and waste, and its groups with the rewards of their siblings.

import type { BatchView, BriefPage, BriefRollout } from '@millrace/protocol';
import { useReply, useSlowRevision, useSurroundings } from '../api/hooks.ts';
import { request, toQuery } from '../api/request.ts';
import { toAddress } from '../logic/address.ts';
import { formatCount, formatMs, formatShare } from '../logic/format.ts';
import { toHarmless } from '../logic/harmless.ts';
import { Empty, ErrorNote, Panel, Reward, Stat, StateTag } from '../parts/bits.tsx';

const shownRollouts = 1000;

export function BatchPage({ id }: { readonly id: string }) {
  const revision = useSlowRevision(2000);
  const { data: batch, error } = useReply<BatchView>(`/v1/batches/${encodeURIComponent(id)}`, revision);
  const { data: page } = useReply<BriefPage>(`/dashboard/api/rollouts${toQuery({ batch: id, limit: shownRollouts })}`, revision);
  return (
    <div className="page">
      <div className="title-line">
        <h1 className="mono">{toHarmless(id)}</h1>
        {batch === undefined ? null : <StateTag state={batch.paused === undefined ? batch.state : 'paused'} />}
        <a href={toAddress('rollouts', undefined, { batch: id })}>its rollouts</a>
        {batch === undefined ? null : <BatchButtons batch={batch} />}
      </div>
      <ErrorNote error={error} />
      {batch?.paused === undefined ? null : <p className="note note-warn">Paused: {toHarmless(batch.paused.reason)}</p>}
      {batch?.waiting === undefined ? null : <p className="note note-warn">{toHarmless(batch.waiting)}</p>}
      {batch === undefined ? null : <BatchNumbers batch={batch} />}
      <Groups rollouts={page?.rows ?? []} />
    </div>
  );
}

function BatchNumbers({ batch }: { readonly batch: BatchView }) {
  const { groups, wasted } = batch;
  const seconds = Object.values(wasted).reduce((sum, one) => sum + one.seconds, 0);
  const tokens = Object.values(wasted).reduce((sum, one) => sum + one.tokens, 0);
  const end = batch.ended_at === null ? Date.now() : Date.parse(batch.ended_at);
  const delivered = groups.delivered ?? 0;
  return (
    <div className="stats">
      <Stat label="delivered" value={`${delivered} / ${batch.target}`} note={`groups of ${batch.group_size}`} />
      <Stat label="informative" value={formatShare(batch.informative_share)} note="of judged groups" />
      <Stat label="mean reward" value={<Reward value={batch.mean_reward} />} />
      <Stat
        label="not delivered"
        value={`${groups.uniform} uniform`}
        note={`${groups.failed} failed, ${groups.surplus} surplus, ${groups.stale} stale`}
      />
      <Stat label="wasted" value={`${formatCount(tokens)} tokens`} note={`${formatMs(seconds * 1000)} of sampling`} />
      <Stat
        label="time per group"
        value={delivered === 0 ? '–' : formatMs((end - Date.parse(batch.created_at)) / delivered)}
        note={`${groups.open} open now`}
      />
    </div>
  );
}

function BatchButtons({ batch: { id, state, paused } }: { readonly batch: BatchView }) {
  const { session, act } = useSurroundings();
  if (session.right === 'read' || state !== 'open') return null;
  const path = `/v1/batches/${encodeURIComponent(id)}`;
  const cancel = () =>
    act({
      title: 'Cancel this batch',
      text: 'Queued rollouts end at once, running ones within a second. Delivered groups stay readable.',
      button: 'Cancel the batch',
      isDangerous: true,
      run: async () => {
        await request(path, { method: 'DELETE' });
        return 'The batch is cancelled.';
      },
    });
  const resume = () =>
    act({
      title: 'Resume this batch',
      text: 'It starts groups again at once, without waiting for one to succeed.',
      button: 'Resume',
      run: async () => {
        await request(`${path}/resume`, { method: 'POST' });
        return 'The batch goes on.';
      },
    });
  return (
    <div className="title-actions">
      {paused === undefined ? null : (
        <button type="button" onClick={resume}>
          Resume …
        </button>
      )}
      <button type="button" onClick={cancel}>
        Cancel …
      </button>
    </div>
  );
}

function Groups({ rollouts }: { readonly rollouts: readonly BriefRollout[] }) {
  const groups = [...Map.groupBy(rollouts, ({ group }) => group ?? '')].map(([group, siblings]) => ({
    group,
    siblings: siblings.toSorted((one, other) => (other.reward ?? -1) - (one.reward ?? -1)),
  }));
  return (
    <Panel title="Groups" aside={<span className="faint">newest first; each square is a sibling, best first</span>}>
      {groups.length === 0 ? <Empty>No group has begun.</Empty> : null}
      <ul className="groups">
        {groups.map(({ group, siblings }) => (
          <li key={group}>
            <a className="mono" href={toAddress('group', group)}>
              {toHarmless(group)}
            </a>
            <span className="siblings">
              {siblings.map((one) => (
                <a
                  key={one.id}
                  className={`sibling sibling-${toTone(one)}`}
                  href={toAddress('rollout', one.id)}
                  title={`${toHarmless(one.id)}: ${one.reward ?? one.state}`}
                >
                  {one.reward === null ? one.state : <Reward value={one.reward} />}
                </a>
              ))}
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function toTone({ reward, state }: BriefRollout): string {
  if (reward === null) return state === 'failed' ? 'bad' : 'none';
  return reward > 0.999 ? 'good' : reward > 0 ? 'mid' : 'zero';
}
