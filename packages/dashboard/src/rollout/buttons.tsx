// What can be done with a rollout: copy its task, save it as JSON, cancel it, try it again.

import type { DashboardTask, RolloutView, TrajectoryView } from '@millrace/protocol';
import { useState } from 'react';
import { useSurroundings } from '../api/hooks.ts';
import { request } from '../api/request.ts';
import { toAddress } from '../logic/address.ts';
import { toAtif } from '../logic/atif.ts';

/** Set when the pages are built. */
declare const millraceVersion: string;

interface RolloutButtonsProps {
  readonly rollout: RolloutView;
  readonly siblings: readonly string[];
}

export function RolloutButtons({ rollout, siblings }: RolloutButtonsProps) {
  const { session } = useSurroundings();
  const at = siblings.indexOf(rollout.id);
  const other = siblings[at + 1] ?? siblings[at - 1];
  const mayChange = session.right !== 'read' && session.live;
  return (
    <div className="title-actions">
      {rollout.group === null || other === undefined ? null : (
        <a className="button" href={toAddress('group', rollout.group, { left: rollout.id, right: other })}>
          Compare
        </a>
      )}
      <CopyTask id={rollout.id} />
      <button type="button" onClick={() => void saveJson(rollout)}>
        Save JSON
      </button>
      <button type="button" onClick={() => void saveAtif(rollout)} title="Agent Trajectory Interchange Format">
        Save ATIF
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

/** A rollout may have none. */
async function readTrajectory(rollout: RolloutView): Promise<TrajectoryView | null> {
  if (rollout.ended_at === null || (rollout.result?.tokens.prompt ?? 0) === 0) return null;
  return await request<TrajectoryView>(`/v1/rollouts/${encodeURIComponent(rollout.id)}/trajectory`).catch(() => null); // no longer kept
}

async function saveJson(rollout: RolloutView): Promise<void> {
  save(`${rollout.id}.json`, { ...rollout, trajectory: await readTrajectory(rollout) });
}

/** One document; an array of one for each branch if there are several. */
async function saveAtif(rollout: RolloutView): Promise<void> {
  const trajectory = await readTrajectory(rollout);
  const documents = trajectory === null ? [] : toAtif(rollout, trajectory, millraceVersion);
  save(`${rollout.id}.atif.json`, documents.length === 1 ? documents[0] : documents);
}

function save(name: string, content: unknown): void {
  const url = URL.createObjectURL(new Blob([JSON.stringify(content)], { type: 'application/json' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name.replace(/[^\w.-]/g, '_');
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
