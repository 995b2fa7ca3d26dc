// One rollout: what it was, how it ended, and its conversation, tokens, time line, verdict and raw data in tabs.

import type { BriefPage, RolloutView, TokenPieces, TrajectoryView } from '@millrace/protocol';
import { useEffect } from 'react';
import { useLive, useReply } from '../api/hooks.ts';
import { toQuery } from '../api/request.ts';
import { toAddress } from '../logic/address.ts';
import { stripAnsi } from '../logic/ansi.ts';
import { colourings, trainerColourings } from '../logic/colours.ts';
import { formatCount, formatMs } from '../logic/format.ts';
import { toHarmless } from '../logic/harmless.ts';
import { Empty, ErrorNote, Reward, Stat, StateTag } from '../parts/bits.tsx';
import { usePageKeys } from '../parts/shortcuts.tsx';
import { useBranchTree } from '../rollout/branch-tree.tsx';
import { RolloutButtons } from '../rollout/buttons.tsx';
import { Conversation, type ShownPart } from '../rollout/conversation.tsx';
import { RawData } from '../rollout/raw-data.tsx';
import { TimeLine } from '../rollout/time-line.tsx';
import { TokenView } from '../rollout/token-view.tsx';
import { Verdict } from '../rollout/verdict.tsx';

const tabs = ['conversation', 'tokens', 'time', 'verdict', 'raw'] as const;
type Tab = (typeof tabs)[number];

type Query = Readonly<Record<string, string>>;

export function RolloutPage({ id, query }: { readonly id: string; readonly query: Query }) {
  const tab: Tab = tabs.find((name) => name === query.tab) ?? 'conversation';
  const toTab = (name: Tab) => toAddress('rollout', id, { tab: name, branch: query.branch });
  const path = `/v1/rollouts/${encodeURIComponent(id)}`;
  const { events } = useLive();
  const newest = events.find(({ rollout_id }) => rollout_id === id)?.id;
  const { data: rollout, error } = useReply<RolloutView>(path, newest);
  // One that never ran has no tokens.
  const hasTokens = rollout !== undefined && rollout.ended_at !== null && (rollout.result?.tokens.prompt ?? 0) > 0;
  const { data: trajectory, error: lost } = useReply<TrajectoryView>(hasTokens ? `${path}/trajectory` : undefined);
  // At the same time as the trajectory: they wait for the same file or row.
  const isTokens = hasTokens && tab === 'tokens';
  const { data: texts, error: noTexts } = useReply<TokenPieces>(
    isTokens ? `/dashboard/api/rollouts/${encodeURIComponent(id)}/pieces` : undefined,
  );
  const siblings = useSiblings(rollout);
  usePageKeys((key) => {
    const chosen = tabs[Number(key) - 1];
    if (chosen !== undefined) location.replace(toTab(chosen));
    const step = key === ']' ? 1 : key === '[' ? -1 : 0;
    const next = step === 0 ? undefined : siblings[siblings.indexOf(id) + step];
    if (next !== undefined) location.hash = toAddress('rollout', next, { tab });
  });
  if (error !== undefined) return <ErrorNote error={error} />;
  if (rollout === undefined) return <Empty>Reading the rollout …</Empty>;
  return (
    <div className="page">
      <Head rollout={rollout} siblings={siblings} />
      <div className="tabs" role="tablist" aria-label="Parts of the rollout">
        {tabs.map((name) => (
          <a key={name} role="tab" aria-selected={name === tab} href={toTab(name)} onClick={replaceHash}>
            {name}
          </a>
        ))}
      </div>
      <div role="tabpanel" aria-label={tab}>
        {tab === 'time' ? <TimeLine rollout={rollout} revision={newest} /> : null}
        {tab === 'verdict' ? <Verdict rollout={rollout} /> : null}
        {tab === 'raw' ? <RawData rollout={rollout} trajectory={trajectory} /> : null}
        {tab !== 'conversation' && tab !== 'tokens' ? null : (
          <Content
            query={query}
            texts={noTexts === undefined ? texts : { pieces: null, reason: noTexts.message }}
            tab={tab}
            rollout={rollout}
            trajectory={trajectory}
            error={lost}
          />
        )}
      </div>
    </div>
  );
}

/** Tabs are no pages: the way back leads to the list. */
function replaceHash(event: { preventDefault(): void; readonly currentTarget: HTMLAnchorElement }): void {
  event.preventDefault();
  location.replace(event.currentTarget.href);
}

function useSiblings(rollout: RolloutView | undefined): readonly string[] {
  const group = rollout?.group ?? undefined;
  const { data } = useReply<BriefPage>(
    group === undefined ? undefined : `/dashboard/api/rollouts${toQuery({ group, sort: 'id', order: 'asc', limit: 256 })}`,
  );
  return data?.rows.map(({ id }) => id) ?? [];
}

interface ContentProps {
  readonly query: Query;
  readonly texts: TokenPieces | undefined;
  readonly tab: 'conversation' | 'tokens';
  readonly rollout: RolloutView;
  readonly trajectory: TrajectoryView | undefined;
  readonly error: Error | undefined;
}

function Content({ query, texts, tab, rollout, trajectory, error }: ContentProps) {
  useEffect(() => {
    document.body.dataset.ready = trajectory === undefined ? '' : trajectory.rollout_id;
  }, [trajectory]);
  if (rollout.ended_at === null)
    return <Empty>It has not ended: its conversation can be read when it has. The time line shows its turns.</Empty>;
  if ((rollout.result?.tokens.prompt ?? 0) === 0) return <Empty>It ended before the agent said anything.</Empty>;
  if (error !== undefined) return <Empty>{toHarmless(error.message)}</Empty>;
  if (trajectory === undefined) return <Empty>Reading its tokens …</Empty>;
  if (tab === 'conversation' && trajectory.text_dropped)
    return <Empty>Its text was not kept (retention.textHours). Its tokens are all there.</Empty>;
  return <TrajectoryPart query={query} texts={texts} tab={tab} rollout={rollout} trajectory={trajectory} />;
}

interface TrajectoryPartProps extends Omit<ContentProps, 'error'> {
  readonly trajectory: TrajectoryView;
}

/** The conversation or the tokens of one branch. What is shown of it is in the address, so a link shows the same. */
function TrajectoryPart({ query, texts, tab, rollout, trajectory }: TrajectoryPartProps) {
  const tree = useBranchTree(trajectory, rollout);
  const change = (next: Record<string, string | undefined>) => location.replace(toAddress('rollout', rollout.id, { ...query, ...next }));
  const wanted = Number(query.branch ?? 1) - 1;
  const part: ShownPart = {
    branch: tree.some(({ branch }) => branch === wanted) ? wanted : 0,
    turn: query.turn === undefined ? undefined : Number(query.turn),
    onChange: ({ branch, ...rest }) =>
      change({
        ...(branch === undefined ? {} : { branch: branch === 0 ? undefined : String(branch + 1) }),
        ...('turn' in rest ? { turn: rest.turn === undefined ? undefined : String(rest.turn) } : {}),
      }),
  };
  if (tab === 'conversation') return <Conversation trajectory={trajectory} tree={tree} part={part} />;
  const by = [...colourings, ...trainerColourings].find((name) => name === query.colour) ?? 'mask';
  return <TokenView trajectory={trajectory} tree={tree} part={part} by={by} onColour={(colour) => change({ colour })} texts={texts} />;
}

function Head({ rollout, siblings }: { readonly rollout: RolloutView; readonly siblings: readonly string[] }) {
  const { result, failure, group } = rollout;
  const at = siblings.indexOf(rollout.id);
  return (
    <>
      <div className="title-line">
        <h1 className="mono">{toHarmless(rollout.id)}</h1>
        <StateTag state={rollout.state} />
        <a className="chip" href={toAddress('rollouts', undefined, { scenario: rollout.scenario })}>
          {toHarmless(rollout.scenario)}
        </a>
        {group === null ? null : (
          <a className="chip" href={toAddress('group', group)}>
            {siblings.length < 2 ? 'group' : `sibling ${at + 1} of ${siblings.length} in`} {toHarmless(group)}
          </a>
        )}
        <RolloutButtons rollout={rollout} siblings={siblings} />
      </div>
      {failure === null ? null : (
        <div className="note note-bad">
          <strong className="mono">{failure.code}</strong> · blame: {failure.blame}
          {failure.stage === null ? '' : ` · in ${failure.stage}`} · attempt {failure.attempt}
          <pre className="output output-short">{stripAnsi(failure.message)}</pre>
        </div>
      )}
      {rollout.waiting === undefined ? null : <p className="note note-warn">{toHarmless(rollout.waiting)}</p>}
      <div className="stats">
        <Stat label="reward" value={<Reward value={rollout.reward} />} note={result?.stop_reason ?? undefined} />
        <Stat
          label="turns"
          value={result?.turns ?? '–'}
          note={result?.malformed_calls ? `${result.malformed_calls} malformed calls` : undefined}
        />
        <Stat
          label="sampled tokens"
          value={result === null ? '–' : formatCount(result.tokens.sampled)}
          note={
            result === null ? undefined : `${formatCount(result.tokens.prompt)} prompt, ${formatCount(result.tokens.observation)} observed`
          }
        />
        <Stat
          label="time in stages"
          value={result === null ? '–' : formatMs(result.timings.init_ms + result.timings.run_ms + result.timings.evaluate_ms)}
          note={result === null ? undefined : `${formatMs(result.timings.model_ms)} model, ${formatMs(result.timings.tool_ms)} tools`}
        />
        <Stat label="policy version" value={toVersions(rollout)} note={result?.backends.map(toHarmless).join(', ') || undefined} />
        <Stat label="attempt" value={rollout.attempt} note={rollout.losses > 0 ? `${rollout.losses} workers lost` : undefined} />
      </div>
    </>
  );
}

function toVersions({ result }: RolloutView): string {
  const span = result?.policy_versions;
  if (!span) return '–';
  return span.first === span.last ? String(span.last) : `${span.first} to ${span.last}`;
}
