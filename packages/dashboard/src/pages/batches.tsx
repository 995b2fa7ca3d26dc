// The batches, newest first: how far each is, and what was wasted.

import type { BatchView } from '@millrace/protocol';
import { useNow, useReply, useSlowRevision } from '../api/hooks.ts';
import { toAddress } from '../logic/address.ts';
import { formatAge, formatCount, formatShare } from '../logic/format.ts';
import { toHarmless } from '../logic/harmless.ts';
import { Bar, Empty, ErrorNote, Panel, Reward, StateTag } from '../parts/bits.tsx';

/** The API lists them oldest first, so all pages would have to be read for more. */
const listed = 1000;

export function BatchesPage() {
  const revision = useSlowRevision(2000);
  const now = useNow(5000);
  const { data, error } = useReply<{ batches: BatchView[]; next: string | null }>(`/v1/batches?limit=${listed}`, revision);
  return (
    <div className="page">
      <h1>Batches</h1>
      <ErrorNote error={error} />
      {data?.batches.length === 0 ? <Empty>No batch has been created.</Empty> : null}
      {data === undefined || data.batches.length === 0 ? null : (
        <Panel title="Newest first" aside={data.next === null ? undefined : <span className="faint">the first {listed} only</span>}>
          <div className="scroll-x">
            <table className="table">
              <thead>
                <tr>
                  <th scope="col">batch</th>
                  <th scope="col">state</th>
                  <th scope="col">scenario</th>
                  <th scope="col" className="wide">
                    delivered of target
                  </th>
                  {['delivered', 'open', 'uniform', 'failed', 'surplus', 'stale', 'informative', 'mean reward', 'wasted tokens'].map(
                    (name) => (
                      <th key={name} scope="col" className="number">
                        {name}
                      </th>
                    ),
                  )}
                  <th scope="col" className="number">
                    created
                  </th>
                </tr>
              </thead>
              <tbody>
                {data.batches.toReversed().map((batch) => (
                  <BatchRow key={batch.id} batch={batch} now={now} />
                ))}
              </tbody>
            </table>
          </div>
        </Panel>
      )}
    </div>
  );
}

function BatchRow({ batch, now }: { readonly batch: BatchView; readonly now: number }) {
  const { id, state, scenario, groups, target } = batch;
  const wasted = Object.values(batch.wasted).reduce((sum, { tokens }) => sum + tokens, 0);
  return (
    <tr>
      <th scope="row">
        <a href={toAddress('batch', id)}>{toHarmless(id)}</a>
        {batch.series === null ? null : <div className="faint small">{toHarmless(batch.series)}</div>}
      </th>
      <td>
        <StateTag state={batch.paused === undefined ? state : 'paused'} />
      </td>
      <td>{toHarmless(scenario)}</td>
      <td>
        <Bar
          label={`delivered groups of ${toHarmless(id)}`}
          value={groups.delivered ?? 0}
          most={target}
          tone={state === 'met' ? 'good' : 'busy'}
        />
      </td>
      <td className="number">
        {groups.delivered}/{target}
      </td>
      {(['open', 'uniform', 'failed', 'surplus', 'stale'] as const).map((name) => (
        <td key={name} className={`number ${groups[name] === 0 ? 'faint' : ''}`}>
          {groups[name]}
        </td>
      ))}
      <td className="number">{formatShare(batch.informative_share)}</td>
      <td className="number">
        <Reward value={batch.mean_reward} />
      </td>
      <td className="number">{formatCount(wasted)}</td>
      <td className="number faint">{formatAge(Date.parse(batch.created_at), now)}</td>
    </tr>
  );
}
