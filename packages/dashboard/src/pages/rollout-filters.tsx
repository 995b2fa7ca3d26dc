// The filters of the list. They are part of the address, so that a link shows the same list.

import type { DashboardSummary } from '@millrace/protocol';
import { useEffect, useRef, useState } from 'react';
import { toHarmless } from '../logic/harmless.ts';

type Query = Readonly<Record<string, string>>;

interface FiltersProps {
  readonly query: Query;
  readonly summary: DashboardSummary | undefined;
  readonly onChange: (query: Query) => void;
}

const states = ['live', 'ended', 'queued', 'init', 'ready', 'run', 'evaluate', 'done', 'failed', 'cancelled'];
const blames = ['caller', 'policy', 'task', 'sandbox', 'backend', 'verifier', 'service'];
const rewards: readonly (readonly [string, Query])[] = [
  ['any reward', {}],
  ['measured', { rewarded: 'yes' }],
  ['none', { rewarded: 'no' }],
  ['above 0', { reward_min: '0.000001' }],
  ['0 or less', { reward_max: '0' }],
  ['1 or more', { reward_min: '1' }],
];

export function Filters({ query, summary, onChange }: FiltersProps) {
  const set = (change: Record<string, string | undefined>) => onChange(toDefined({ ...query, ...change }));
  const rewardIndex = rewards.findIndex(
    ([, one]) => one.rewarded === query.rewarded && one.reward_min === query.reward_min && one.reward_max === query.reward_max,
  );
  const extra = (['group', 'batch', 'code', 'version'] as const).flatMap((name) => {
    const value = query[name];
    return value === undefined ? [] : [{ name, value }];
  });
  const setReward = (index: number) => set({ rewarded: undefined, reward_min: undefined, reward_max: undefined, ...rewards[index]?.[1] });
  return (
    // biome-ignore lint/a11y/useSemanticElements: a search element has no support in older browsers
    <div className="filters" role="search">
      <TextFilter value={query.text ?? ''} onChange={(text) => set({ text })} />
      <Choice label="state" value={query.state} options={states} onChange={(state) => set({ state })} />
      <Choice
        label="scenario"
        value={query.scenario}
        options={summary?.scenarios.map(({ name }) => name) ?? (query.scenario === undefined ? [] : [query.scenario])}
        onChange={(scenario) => set({ scenario })}
      />
      <Choice label="blame" value={query.blame} options={blames} onChange={(blame) => set({ blame })} />
      <label className="choice">
        <span className="visually-hidden">reward</span>
        <select value={rewardIndex < 0 ? '' : rewardIndex} onChange={(event) => setReward(Number(event.target.value))}>
          {rewardIndex < 0 ? <option value="">other</option> : null}
          {rewards.map(([label], index) => (
            <option key={label} value={index}>
              {index === 0 ? label : `reward: ${label}`}
            </option>
          ))}
        </select>
      </label>
      {extra.map(({ name, value }) => (
        <button key={name} type="button" className="chip chip-on" onClick={() => set({ [name]: undefined })} aria-label={`Remove ${name}`}>
          {name}: {toHarmless(value)} <span aria-hidden="true">×</span>
        </button>
      ))}
      {Object.keys(query).length === 0 ? null : (
        <button type="button" className="quiet" onClick={() => onChange({})}>
          Clear
        </button>
      )}
    </div>
  );
}

function toDefined(query: Record<string, string | undefined>): Query {
  return Object.fromEntries(Object.entries(query).flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, value]])));
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly options: readonly string[];
  readonly onChange: (value: string | undefined) => void;
}

function Choice({ label, value, options, onChange }: ChoiceProps) {
  return (
    <label className="choice">
      <span className="visually-hidden">{label}</span>
      <select value={value ?? ''} onChange={(event) => onChange(event.target.value || undefined)}>
        <option value="">any {label}</option>
        {options.map((option) => (
          <option key={option} value={option}>
            {toHarmless(option)}
          </option>
        ))}
      </select>
    </label>
  );
}

const typingMs = 200;

function TextFilter({ value, onChange }: { readonly value: string; readonly onChange: (text: string) => void }) {
  const [text, setText] = useState(value);
  const change = useRef(onChange);
  change.current = onChange;
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => change.current(text), typingMs);
    return () => clearTimeout(timer);
  }, [text, value]);
  return (
    <input
      type="search"
      aria-label="Search"
      placeholder="id, group, error, metadata …   /"
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  );
}
