// The siblings of a group: their rewards in a table, and two of them next to each other from the token at which they part.

import type { BriefPage, BriefRollout, TrajectoryView } from '@millrace/protocol';
import { useMemo } from 'react';
import { useReply, useSlowRevision } from '../api/hooks.ts';
import { toQuery } from '../api/request.ts';
import { toAddress } from '../logic/address.ts';
import { findDivergence } from '../logic/diverge.ts';
import { formatCount, formatMs, formatNumber } from '../logic/format.ts';
import { toHarmless } from '../logic/harmless.ts';
import { Empty, ErrorNote, Panel, Reward, StateTag } from '../parts/bits.tsx';
import { Compared } from '../rollout/compared.tsx';

interface GroupPageProps {
  readonly id: string;
  /** The two that are compared, `left` and `right`; the best and the worst unless named. */
  readonly query: Readonly<Record<string, string>>;
}

export function GroupPage({ id, query }: GroupPageProps) {
  const revision = useSlowRevision(2000);
  const { data, error } = useReply<BriefPage>(`/dashboard/api/rollouts${toQuery({ group: id, sort: 'reward', limit: 256 })}`, revision);
  const rows = data?.rows ?? [];
  const ended = rows.filter(({ ended_at }) => ended_at !== null);
  const named = [query.left, query.right];
  const isNamed = named.some((one) => one !== undefined);
  const pair = (isNamed ? named : [ended[0]?.id, ended.length > 1 ? ended.at(-1)?.id : undefined]).flatMap((one) => one ?? []);
  const choose = (rollout: string) => {
    const [left, right] = pair.includes(rollout) ? pair.filter((one) => one !== rollout) : [...pair, rollout].slice(-2);
    location.replace(toAddress('group', id, { left, right }));
  };
  const rewards = rows.flatMap(({ reward }) => reward ?? []);
  return (
    <div className="page">
      <div className="title-line">
        <h1 className="mono">{toHarmless(id)}</h1>
        <span className="faint">
          {rows.length} siblings, mean reward{' '}
          {formatNumber(rewards.length === 0 ? null : rewards.reduce((a, b) => a + b, 0) / rewards.length)}
        </span>
      </div>
      <ErrorNote error={error} />
      <Panel title="Siblings" aside={<span className="faint">choose two to compare</span>}>
        <div className="scroll-x">
          <table className="table">
            <thead>
              <tr>
                <th scope="col">compare</th>
                <th scope="col">rollout</th>
                <th scope="col">state</th>
                {['reward', 'turns', 'sampled', 'busy'].map((name) => (
                  <th key={name} scope="col" className="number">
                    {name}
                  </th>
                ))}
                <th scope="col">ended by</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <SiblingRow key={row.id} row={row} isChosen={pair.includes(row.id)} onChoose={() => choose(row.id)} />
              ))}
            </tbody>
          </table>
        </div>
        {data !== undefined && rows.length === 0 ? <Empty>No rollout of this group is kept.</Empty> : null}
      </Panel>
      {pair.length === 2 ? <Pair key={pair.join(' ')} ids={pair} rows={rows} /> : null}
    </div>
  );
}

interface SiblingRowProps {
  readonly row: BriefRollout;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}

function SiblingRow({ row, isChosen, onChoose }: SiblingRowProps) {
  return (
    <tr>
      <td>
        <input
          type="checkbox"
          aria-label={`Compare ${toHarmless(row.id)}`}
          checked={isChosen}
          disabled={row.ended_at === null}
          onChange={onChoose}
        />
      </td>
      <th scope="row">
        <a className="mono" href={toAddress('rollout', row.id)}>
          {toHarmless(row.id)}
        </a>
      </th>
      <td>
        <StateTag state={row.state} />
      </td>
      <td className="number">
        <Reward value={row.reward} />
      </td>
      <td className="number">{row.turns}</td>
      <td className="number">{formatCount(row.sampled)}</td>
      <td className="number">{formatMs(row.busy_ms)}</td>
      <td className={row.code === null ? 'faint' : 'bad-text'}>{row.code ?? row.stop_reason ?? ''}</td>
    </tr>
  );
}

function Pair({ ids, rows }: { readonly ids: readonly string[]; readonly rows: readonly BriefRollout[] }) {
  const toPath = (id: string | undefined) => (id === undefined ? undefined : `/v1/rollouts/${encodeURIComponent(id)}/trajectory`);
  const left = useReply<TrajectoryView>(toPath(ids[0]));
  const right = useReply<TrajectoryView>(toPath(ids[1]));
  const both = useMemo(() => [left.data, right.data].flatMap((one) => one ?? []), [left.data, right.data]);
  const divergence = useMemo(() => findDivergence(both.map(({ segments }) => segments)), [both]);
  if (left.error ?? right.error) return <ErrorNote error={left.error ?? right.error} />;
  if (both.length < 2) return <Empty>Reading both …</Empty>;
  return (
    <>
      <p className="note" role="status">
        {divergence.at.every((place) => place === undefined)
          ? `They are equal: ${divergence.tokens.toLocaleString('en')} tokens.`
          : `They share their first ${divergence.tokens.toLocaleString('en')} tokens, and part from there.`}
      </p>
      <div className="grid grid-two">
        {both.map((trajectory, index) => (
          <Compared
            key={trajectory.rollout_id}
            trajectory={trajectory}
            place={divergence.at[index]}
            reward={rows.find(({ id }) => id === trajectory.rollout_id)?.reward ?? null}
          />
        ))}
      </div>
    </>
  );
}
