// All rollouts: filtered, sorted, a hundred thousand lines of which only the visible ones are read.

import type { BriefRollout } from '@millrace/protocol';
import { memo, useCallback, useState } from 'react';
import { useNow, useSlowRevision, useSummary } from '../api/hooks.ts';
import { useRolloutWindow } from '../api/rollout-window.ts';
import { toAddress } from '../logic/address.ts';
import { formatAge, formatCount, formatMs, formatNumber } from '../logic/format.ts';
import { toHarmless } from '../logic/harmless.ts';
import { Empty, ErrorNote, Reward, StateTag } from '../parts/bits.tsx';
import { VirtualRows } from '../parts/virtual-rows.tsx';
import { Filters } from './rollout-filters.tsx';

type Query = Readonly<Record<string, string>>;

const rowHeight = 34;

const columns: readonly { readonly name: string; readonly title: string; readonly isNumber?: boolean }[] = [
  { name: 'id', title: 'rollout' },
  { name: '', title: 'state' },
  { name: 'reward', title: 'reward', isNumber: true },
  { name: '', title: 'scenario' },
  { name: '', title: 'group' },
  { name: 'turns', title: 'turns', isNumber: true },
  { name: 'sampled', title: 'sampled', isNumber: true },
  { name: 'busy', title: 'busy', isNumber: true },
  { name: 'version', title: 'policy', isNumber: true },
  { name: '', title: 'ended by' },
  { name: 'created', title: 'created', isNumber: true },
];

export function RolloutsPage({ query }: { readonly query: Query }) {
  const revision = useSlowRevision(2000);
  const now = useNow(5000);
  const [selected, setSelected] = useState(-1);
  const { data: summary } = useSummary(20_000);
  const { page, error, rowAt, onWindow } = useRolloutWindow(query, revision);
  const open = useCallback(
    (index: number) => {
      const row = rowAt(index);
      if (row !== undefined) location.hash = toAddress('rollout', row.id);
    },
    [rowAt],
  );
  const change = (next: Query) => {
    setSelected(-1);
    location.replace(toAddress('rollouts', undefined, next));
  };
  return (
    <div className="page page-full">
      <div className="title-line">
        <h1>Rollouts</h1>
        <span className="faint" role="status">
          {page === undefined
            ? 'reading …'
            : `${page.total.toLocaleString('en')} match, mean reward ${formatNumber(page.mean_reward)}${
                page.complete ? '' : ` · ${formatCount(page.indexed)} read so far`
              }`}
        </span>
        <a href={toAddress('scan', undefined, toScanned(query))}>scan their conversations</a>
      </div>
      <Filters query={query} summary={summary} onChange={change} />
      <ErrorNote error={error} />
      <div className="list">
        <Head query={query} onChange={change} />
        {page !== undefined && page.total === 0 ? (
          <Empty>{Object.keys(query).length === 0 ? 'No rollout has been submitted yet.' : 'No rollout matches these filters.'}</Empty>
        ) : null}
        <VirtualRows
          count={page?.total ?? 0}
          rowHeight={rowHeight}
          label="Rollouts"
          selected={selected}
          onSelect={setSelected}
          onOpen={open}
          onWindow={onWindow}
          render={(index) => <Row row={rowAt(index)} now={now} />}
        />
      </div>
    </div>
  );
}

/** A scan takes the newest ones. */
function toScanned({ sort: _sort, order: _order, ...filters }: Query): Query {
  return filters;
}

function Head({ query, onChange }: { readonly query: Query; readonly onChange: (query: Query) => void }) {
  const { sort = 'created', order = 'desc' } = query;
  return (
    <div className="row row-head">
      {columns.map(({ name, title, isNumber }) => {
        const isSorted = name !== '' && sort === name;
        const className = `cell ${isNumber === true ? 'number' : ''}`;
        if (name === '')
          return (
            <span key={title} className={className}>
              {title}
            </span>
          );
        const next = isSorted && order === 'desc' ? 'asc' : 'desc';
        return (
          <span key={title} className={className}>
            <button
              type="button"
              className="sort"
              aria-label={`Sort by ${title}, ${next === 'desc' ? 'highest' : 'lowest'} first`}
              onClick={() => onChange({ ...query, sort: name, order: next })}
            >
              {title}
              <span aria-hidden="true">{isSorted ? (order === 'desc' ? ' ↓' : ' ↑') : ''}</span>
            </button>
          </span>
        );
      })}
    </div>
  );
}

const Row = memo(function Row({ row, now }: { readonly row: BriefRollout | undefined; readonly now: number }) {
  if (row === undefined) return <span className="cell faint">…</span>;
  return (
    <>
      <span className="cell mono strong">{toHarmless(row.id)}</span>
      <span className="cell">
        <StateTag state={row.state} />
      </span>
      <span className="cell number">
        <Reward value={row.reward} />
      </span>
      <span className="cell">{toHarmless(row.scenario)}</span>
      <span className="cell mono faint">{row.group === null ? '' : toHarmless(row.group)}</span>
      <span className="cell number">{row.turns || ''}</span>
      <span className="cell number">{row.sampled === 0 ? '' : formatCount(row.sampled)}</span>
      <span className="cell number">{row.busy_ms === 0 ? '' : formatMs(row.busy_ms)}</span>
      <span className="cell number">{row.version ?? ''}</span>
      <span className={`cell ${row.code === null ? 'faint' : 'bad-text'}`}>
        {row.code === null ? (row.stop_reason ?? '') : `${row.code} (${row.blame})`}
      </span>
      <span className="cell number faint">{formatAge(row.created_at, now)}</span>
    </>
  );
});
