// What can be done with a rollout: copy its task, save it as JSON, cancel it, try it again.

import type { DashboardTask, RolloutView } from '@millrace/protocol';
import { useState } from 'react';
import { useSurroundings } from '../api/hooks.ts';
import { request } from '../api/request.ts';
import { toAddress } from '../logic/address.ts';

export function RolloutButtons({ rollout }: { readonly rollout: RolloutView }) {
  const { session } = useSurroundings();
  const mayChange = session.right !== 'read' && session.live;
  return (
    <div className="title-actions">
      <CopyTask id={rollout.id} />
      <button type="button" onClick={() => void save(rollout)}>
        Save JSON
      </button>
      {mayChange && rollout.ended_at === null ? <CancelButton id={rollout.id} /> : null}
      {mayChange && rollout.ended_at !== null && rollout.reward === null ? <RetryButton id={rollout.id} /> : null}
    </div>
  );
}

function CopyTask({ id }: { readonly id: string }) {
  const [outcome, setOutcome] = useState('');
  const copy = async () => {
    const { submission } = await request<DashboardTask>(`/dashboard/api/rollouts/${encodeURIComponent(id)}/task`);
    await navigator.clipboard.writeText(JSON.stringify(submission));
    setOutcome('Copied');
  };
  const tryCopy = () => void copy().catch((error: Error) => setOutcome(error.message));
  return (
    <button type="button" onClick={tryCopy} title="Its submission as one line of JSON, for millrace submit">
      {outcome === '' ? 'Copy as task' : outcome}
    </button>
  );
}

async function save(rollout: RolloutView): Promise<void> {
  const path = `/v1/rollouts/${encodeURIComponent(rollout.id)}/trajectory`;
  const trajectory =
    rollout.ended_at === null || (rollout.result?.tokens.prompt ?? 0) === 0 ? null : await request<unknown>(path).catch(() => null); // a rollout may have none
  const url = URL.createObjectURL(new Blob([JSON.stringify({ ...rollout, trajectory })], { type: 'application/json' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = `${rollout.id.replace(/[^\w.-]/g, '_')}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function CancelButton({ id }: { readonly id: string }) {
  const { act } = useSurroundings();
  const cancel = () =>
    act({
      title: 'Cancel this rollout',
      text: 'It ends without a reward: at once if it is queued, within a second if it runs.',
      button: 'Cancel the rollout',
      isDangerous: true,
      run: async () => {
        const { cancel: outcome } = await request<{ cancel: string }>(`/v1/rollouts/${encodeURIComponent(id)}`, { method: 'DELETE' });
        return outcome === 'ended' ? 'It had ended before.' : 'It is cancelled.';
      },
    });
  return (
    <button type="button" onClick={cancel}>
      Cancel …
    </button>
  );
}

function RetryButton({ id }: { readonly id: string }) {
  const { act } = useSurroundings();
  const retry = () =>
    act({
      title: 'Try this task again',
      text: 'Its task is submitted again as a new rollout.',
      button: 'Try again',
      run: async () => {
        const next = await request<RolloutView>(`/v1/rollouts/${encodeURIComponent(id)}/retry`, { method: 'POST' });
        location.hash = toAddress('rollout', next.id);
        return `${next.id} tries it again.`;
      },
    });
  return (
    <button type="button" onClick={retry}>
      Try again …
    </button>
  );
}
