// Searches the conversations of the rollouts that match the filters of the list: refusals, loops, broken environments and the reader's
// own patterns. The page reads them one after the other and searches them itself, so a scan costs the service what reading them costs.

import type { BriefPage, TrajectoryView } from '@millrace/protocol';
import { type FormEvent, useEffect, useMemo, useState } from 'react';
import { isAborted, request, toQuery } from '../api/request.ts';
import { toAddress } from '../logic/address.ts';
import { stripAnsi } from '../logic/ansi.ts';
import { formatCount, formatShare } from '../logic/format.ts';
import { toHarmless } from '../logic/harmless.ts';
import { builtInPatterns, type Finding, loopName, parsePattern, type ScanPattern, scanTrajectory } from '../logic/scan.ts';
import type { SegmentView } from '../logic/tokens.ts';
import { Bar, Empty, ErrorNote, Panel } from '../parts/bits.tsx';

type Query = Readonly<Record<string, string>>;

const readAtOnce = 4;
const fillingMs = 300;
const limits = [100, 300, 1000];
const shownOfOne = 30;

interface ReadConversation {
  readonly id: string;
  readonly segments: readonly SegmentView[];
}

export function ScanPage({ query: { limit, pattern = '', ...filters } }: { readonly query: Query }) {
  const most = limits.find((one) => String(one) === limit) ?? 100;
  const { total, read, conversations, error } = useConversations(filters, most);
  const own = useMemo(() => toPattern(pattern), [pattern]);
  const findings = useMemo(() => scanAll(conversations, own), [conversations, own]);
  const change = (next: Record<string, string>) => location.replace(toAddress('scan', undefined, { ...filters, limit, pattern, ...next }));
  const names = [...(own instanceof Error || own === undefined ? [] : [own.name]), ...builtInPatterns.map(({ name }) => name), loopName];
  return (
    <div className="page">
      <div className="title-line">
        <h1>Scan</h1>
        <span className="faint" role="status">
          {total === undefined ? 'reading …' : `${formatCount(read)} of ${formatCount(total)} conversations read`}
        </span>
        <a href={toAddress('rollouts', undefined, filters)}>
          {Object.keys(filters).length === 0 ? 'of all rollouts' : 'of the filtered list'}
        </a>
      </div>
      <div className="filters">
        <PatternField value={pattern} onChange={(value) => change({ pattern: value })} />
        <label className="choice">
          <span className="visually-hidden">how many</span>
          <select value={most} onChange={(event) => change({ limit: event.target.value })}>
            {limits.map((one) => (
              <option key={one} value={one}>
                the newest {one}
              </option>
            ))}
          </select>
        </label>
      </div>
      <ErrorNote error={error ?? (own instanceof Error ? own : undefined)} />
      {total === 0 ? <Empty>No rollout that matches has ended with a conversation.</Empty> : null}
      {names.map((name) => (
        <Found key={name} name={name} findings={findings.get(name) ?? []} read={read} />
      ))}
    </div>
  );
}

function PatternField({ value, onChange }: { readonly value: string; readonly onChange: (value: string) => void }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onChange(text.trim());
  };
  return (
    <form className="pattern" onSubmit={submit}>
      <input
        type="search"
        aria-label="Your own pattern"
        placeholder="your own pattern: a regular expression"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <button type="submit">Search</button>
    </form>
  );
}

interface PlacedFinding extends Finding {
  readonly id: string;
}

interface FoundProps {
  readonly name: string;
  readonly findings: readonly PlacedFinding[];
  readonly read: number;
}

function Found({ name, findings, read }: FoundProps) {
  const rollouts = new Set(findings.map(({ id }) => id)).size;
  return (
    <Panel
      title={toHarmless(name)}
      aside={
        <span className="faint">
          {formatCount(rollouts)} rollouts, {formatShare(read === 0 ? null : rollouts / read)}
        </span>
      }
    >
      <Bar label={`share of ${toHarmless(name)}`} value={rollouts} most={Math.max(1, read)} tone="warn" />
      {findings.length === 0 ? null : (
        <ul className="findings">
          {findings.slice(0, shownOfOne).map(({ id, turn, branch, excerpt }) => (
            <li key={`${id} ${branch} ${turn} ${excerpt}`}>
              <a
                className="mono"
                href={toAddress('rollout', id, { turn: String(turn), branch: branch === 0 ? undefined : String(branch + 1) })}
              >
                {toHarmless(id)}
              </a>{' '}
              <span className="faint">turn {turn}</span>
              <span className="finding">{stripAnsi(excerpt)}</span>
            </li>
          ))}
        </ul>
      )}
      {findings.length > shownOfOne ? <p className="faint small">and {formatCount(findings.length - shownOfOne)} more</p> : null}
    </Panel>
  );
}

function toPattern(text: string): ScanPattern | Error | undefined {
  if (text === '') return undefined;
  try {
    return parsePattern(text);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function scanAll(
  conversations: readonly ReadConversation[],
  own: ScanPattern | Error | undefined,
): ReadonlyMap<string, readonly PlacedFinding[]> {
  const patterns = own === undefined || own instanceof Error ? builtInPatterns : [own, ...builtInPatterns];
  return Map.groupBy(
    conversations.flatMap(({ id, segments }) => scanTrajectory(segments, patterns).map((finding) => ({ id, ...finding }))),
    ({ name }) => name,
  );
}

interface Reading {
  readonly total?: number;
  readonly read: number;
  readonly conversations: readonly ReadConversation[];
  readonly error?: Error;
}

/** Without their numbers: only the texts stay in memory. */
function useConversations(filters: Query, most: number): Reading {
  const [state, setState] = useState<Reading>({ read: 0, conversations: [] });
  const key = toQuery({ ...filters, limit: most });
  useEffect(() => {
    const stopped = new AbortController();
    const { signal } = stopped;
    const readAll = async () => {
      const rows = await readRows(key, signal);
      const ids = rows.filter(({ ended_at, turns }) => ended_at !== null && turns > 0).map(({ id }) => id);
      const conversations: ReadConversation[] = [];
      setState({ total: ids.length, read: 0, conversations });
      for (let at = 0; at < ids.length; at += readAtOnce) {
        const some = ids.slice(at, at + readAtOnce);
        conversations.push(...(await Promise.all(some.map((id) => readConversation(id, signal)))).flat());
        if (signal.aborted) return;
        setState({ total: ids.length, read: Math.min(ids.length, at + readAtOnce), conversations: [...conversations] });
      }
    };
    readAll().catch((error: Error) => {
      if (!isAborted(error) && !signal.aborted) setState((before) => ({ ...before, error }));
    });
    return () => stopped.abort();
  }, [key]);
  return state;
}

/** The newest that match, once the server has read all that it lists. */
async function readRows(key: string, signal: AbortSignal): Promise<BriefPage['rows']> {
  for (;;) {
    const { rows, complete } = await request<BriefPage>(`/dashboard/api/rollouts${key}`, { signal });
    if (complete || signal.aborted) return rows;
    await new Promise((resolve) => setTimeout(resolve, fillingMs));
  }
}

async function readConversation(id: string, signal: AbortSignal): Promise<ReadConversation[]> {
  try {
    const { segments } = await request<TrajectoryView>(`/v1/rollouts/${encodeURIComponent(id)}/trajectory`, { signal });
    return [{ id, segments: segments.map((segment) => ({ ...segment, token_ids: [], logprobs: [], text: '' })) }];
  } catch (error) {
    if (isAborted(error)) throw error;
    return []; // no longer kept
  }
}
