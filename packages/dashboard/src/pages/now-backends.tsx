// The backends: what runs on each, how long its oldest call has been silent, and what is wrong with it.

import type { BackendView } from '@millrace/protocol';
import { useSurroundings } from '../api/hooks.ts';
import { request } from '../api/request.ts';
import { formatCount, formatMs, formatNumber } from '../logic/format.ts';
import { toHarmless } from '../logic/harmless.ts';
import { Empty, Panel, StateTag } from '../parts/bits.tsx';

/** A backend that has sent nothing for this long is worth a look. */
const silentMs = 30_000;

const columns = [
  'backend',
  'state',
  'model',
  'policy',
  'rollouts',
  'calls',
  'oldest call',
  'silent for',
  'tokens/s',
  'waits for cache',
  'context',
];
const texts = 3;

export function Backends({ backends }: { readonly backends: readonly BackendView[] }) {
  return (
    <Panel title="Backends">
      {backends.length === 0 ? (
        <Empty>
          No backend has joined: <code>millrace backend add http://gpu-0:8000</code>
        </Empty>
      ) : (
        <div className="scroll-x">
          <table className="table">
            <thead>
              <tr>
                {columns.map((name, index) => (
                  <th key={name} scope="col" className={index < texts ? '' : 'number'}>
                    {name}
                  </th>
                ))}
                <th scope="col">
                  <span className="visually-hidden">actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {backends.map((backend) => (
                <BackendRow key={backend.id} backend={backend} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

function BackendRow({ backend }: { readonly backend: BackendView }) {
  const { call_progress: progress, probe } = backend;
  const silent = progress === null ? null : (progress.last_token_ms ?? progress.oldest_call_ms);
  const state = backend.health === 'broken' ? 'broken' : backend.state;
  const engine = [probe?.engine ?? backend.dialect, probe?.version].filter(Boolean).join(' ');
  return (
    <tr>
      <th scope="row">
        <div>{toHarmless(backend.id)}</div>
        <div className="faint small">{toHarmless(backend.url)}</div>
      </th>
      <td>
        <StateTag state={state} />
        {backend.last_error === null ? null : (
          <div className="small bad-text" title={toHarmless(backend.last_error.message)}>
            {toHarmless(backend.last_error.message.slice(0, 60))}
          </div>
        )}
      </td>
      <td>
        <div>{toHarmless(backend.model ?? probe?.model ?? '–')}</div>
        <div className="faint small">{toHarmless(engine)}</div>
      </td>
      <td className="number">{backend.policy_version}</td>
      <td className="number">{backend.in_flight}</td>
      <td className="number">{backend.calls}</td>
      <td className="number">{formatMs(progress?.oldest_call_ms)}</td>
      <td className={`number ${silent !== null && silent > silentMs ? 'bad-text' : ''}`}>{formatMs(silent)}</td>
      <td className="number">{formatNumber(progress?.tokens_per_s, 0)}</td>
      <td className="number">{backend.held_for_cache}</td>
      <td className="number">{formatCount(backend.tokens)}</td>
      <td className="actions">
        <DrainButton backend={backend} />
      </td>
    </tr>
  );
}

function DrainButton({ backend: { id, state } }: { readonly backend: BackendView }) {
  const { session, act } = useSurroundings();
  if (session.right !== 'admin' || state !== 'up') return null;
  const drain = () =>
    act({
      title: `Drain ${toHarmless(id)}`,
      text: 'It gets no new rollouts. Those that it has go on until they end. Joining it again makes it available.',
      button: 'Drain',
      isDangerous: true,
      run: async () => {
        await request(`/v1/backends/${encodeURIComponent(id)}/drain`, { method: 'POST' });
        return 'The backend drains.';
      },
    });
  return (
    <button type="button" className="quiet" onClick={drain}>
      Drain …
    </button>
  );
}
