// Small pieces that every page uses.

import type { ReactNode } from 'react';
import { formatNumber } from '../logic/format.ts';
import { toHarmless } from '../logic/harmless.ts';

/** `label` says it to those who do not see the colour. */
export function Tag({ tone, children }: { readonly tone: string; readonly children: ReactNode }) {
  return <span className={`tag tone-${tone}`}>{children}</span>;
}

const stateTones: Readonly<Record<string, string>> = {
  done: 'good',
  met: 'good',
  up: 'good',
  live: 'good',
  running: 'good',
  failed: 'bad',
  lost: 'bad',
  broken: 'bad',
  cancelled: 'faint',
  left: 'faint',
  queued: 'faint',
  run: 'busy',
  evaluate: 'busy',
  init: 'busy',
  ready: 'busy',
  open: 'busy',
  short: 'warn',
  draining: 'warn',
  paused: 'warn',
  pausing: 'warn',
};

export function StateTag({ state }: { readonly state: string }) {
  return <Tag tone={stateTones[state] ?? 'faint'}>{state}</Tag>;
}

export function Reward({ value }: { readonly value: number | null | undefined }) {
  if (value === null || value === undefined)
    return (
      <span className="faint" title="no reward: nothing was measured">
        –
      </span>
    );
  const tone = value > 0.999 ? 'good' : value > 0 ? 'mid' : 'zero';
  return <span className={`reward reward-${tone}`}>{formatNumber(value)}</span>;
}

interface PanelProps {
  readonly title: ReactNode;
  readonly aside?: ReactNode;
  readonly children: ReactNode;
  readonly className?: string;
}

export function Panel({ title, aside, children, className = '' }: PanelProps) {
  return (
    <section className={`panel ${className}`}>
      <header className="panel-head">
        <h2>{title}</h2>
        {aside === undefined ? null : <div className="panel-aside">{aside}</div>}
      </header>
      {children}
    </section>
  );
}

export function Stat({ label, value, note }: { readonly label: string; readonly value: ReactNode; readonly note?: ReactNode }) {
  return (
    <div className="stat">
      <div className="stat-label">{label}</div>
      <div className="stat-value">{value}</div>
      {note === undefined ? null : <div className="stat-note">{note}</div>}
    </div>
  );
}

export function Empty({ children }: { readonly children: ReactNode }) {
  return <p className="empty">{children}</p>;
}

export function ErrorNote({ error }: { readonly error: Error | undefined }) {
  return error === undefined ? null : (
    <p className="note note-bad" role="alert">
      {toHarmless(error.message)}
    </p>
  );
}

interface BarProps {
  readonly value: number;
  readonly most: number;
  readonly label: string;
  readonly tone?: string;
}

export function Bar({ value, most, label, tone = 'busy' }: BarProps) {
  const share = most <= 0 ? 0 : Math.min(1, value / most);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a meter element cannot be styled alike everywhere
    <div className="bar" role="meter" aria-label={label} aria-valuenow={value} aria-valuemin={0} aria-valuemax={Math.max(most, value, 1)}>
      <div className={`bar-fill tone-${tone}`} style={{ width: `${100 * share}%` }} />
    </div>
  );
}
