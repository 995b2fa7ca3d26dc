// The conversation as a person reads it: who said what, which tools were called with what, and what they answered.

import type { Message, TrajectoryView } from '@millrace/protocol';
import { useMemo, useRef, useState } from 'react';
import type { BranchNode } from '../logic/branch-tree.ts';
import { type ConversationEntry, toArgumentText, toConversation } from '../logic/conversation.ts';
import { formatCount } from '../logic/format.ts';
import { toHarmless } from '../logic/harmless.ts';
import { Output, Prose } from '../parts/output.tsx';
import { usePageKeys } from '../parts/shortcuts.tsx';
import { BranchTree } from './branch-tree.tsx';
import { Replay } from './replay.tsx';

/** What part of a trajectory is shown; it is in the address. */
export interface ShownPart {
  readonly branch: number;
  /** Replayed until this turn; all of it if absent. */
  readonly turn: number | undefined;
  readonly onChange: (part: { readonly branch?: number; readonly turn?: number | undefined }) => void;
}

interface ConversationProps {
  readonly trajectory: TrajectoryView;
  readonly tree: readonly BranchNode[];
  readonly part: ShownPart;
}

export function Conversation({ trajectory, tree, part }: ConversationProps) {
  const { segments } = trajectory;
  const [shows, setShows] = useState({ reasoning: true, tools: true, facts: true });
  const all = useMemo(() => toConversation(segments, part.branch), [segments, part.branch]);
  const turns = useMemo(
    () => [...new Set(all.flatMap(({ message, turn }) => (message.role === 'assistant' && turn > 0 ? turn : [])))],
    [all],
  );
  const entries = part.turn === undefined ? all : all.filter(({ turn }) => turn <= (part.turn ?? 0));
  const own = tree.find(({ branch }) => branch === part.branch)?.tools;
  const tools = useMemo(() => trajectory.tools.filter(({ name }) => own?.includes(name) ?? true), [trajectory, own]);
  const box = useRef<HTMLOListElement>(null);
  usePageKeys((key) => {
    if (key === 'j' || key === 'k') scrollToTurn(box.current, key === 'j' ? 1 : -1);
  });
  return (
    <>
      <div className="toolbar">
        <Replay turns={turns} part={part} />
        <label>
          <input type="checkbox" checked={shows.reasoning} onChange={() => setShows({ ...shows, reasoning: !shows.reasoning })} /> reasoning
        </label>
        <label>
          <input type="checkbox" checked={shows.tools} onChange={() => setShows({ ...shows, tools: !shows.tools })} /> tool calls and
          results
        </label>
        <label>
          <input type="checkbox" checked={shows.facts} onChange={() => setShows({ ...shows, facts: !shows.facts })} /> metadata
        </label>
      </div>
      <BranchTree tree={tree} branch={part.branch} onChange={(branch) => part.onChange({ branch, turn: undefined })} />
      <ol className="conversation" ref={box}>
        {entries
          .filter(({ message }) => shows.tools || message.role !== 'tool')
          .map((entry, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: messages never move
            <Entry key={index} entry={entry} shows={shows} tools={tools} />
          ))}
      </ol>
    </>
  );
}

function scrollToTurn(box: HTMLElement | null, step: number): void {
  const turns = [...(box?.querySelectorAll('[data-turn-start]') ?? [])];
  const tops = turns.map((turn) => turn.getBoundingClientRect().top - 120);
  const index = step > 0 ? tops.findIndex((top) => top > 4) : tops.findLastIndex((top) => top < -4);
  turns[index]?.scrollIntoView({ block: 'start' });
}

interface EntryProps {
  readonly entry: ConversationEntry;
  readonly shows: { readonly reasoning: boolean; readonly tools: boolean; readonly facts: boolean };
  /** Those that the agent had when it wrote this. */
  readonly tools: TrajectoryView['tools'];
}

function Entry({ entry: { message, turn, facts }, shows, tools }: EntryProps) {
  const isTurn = message.role === 'assistant';
  return (
    <li className={`message message-${message.role}`} {...(isTurn ? { 'data-turn-start': turn } : {})}>
      <div className="message-head">
        <span className="role">
          {message.role === 'tool' ? `result${message.name ? ` of ${toHarmless(message.name)}` : ''}` : message.role}
        </span>
        {isTurn ? <span className="faint">turn {turn}</span> : null}
        {isTurn && shows.facts && facts !== undefined ? <Facts facts={facts} /> : null}
        {isTurn && shows.facts && tools.length > 0 ? <Tools tools={tools} /> : null}
      </div>
      {message.reasoning !== undefined && shows.reasoning ? (
        <details className="reasoning" open>
          <summary>reasoning</summary>
          <Prose text={message.reasoning} />
        </details>
      ) : null}
      {message.role === 'tool' ? <Output text={message.content} /> : <Prose text={message.content} />}
      {shows.tools ? message.tool_calls?.map((call) => <Call key={call.id} call={call} />) : null}
    </li>
  );
}

function Tools({ tools }: { readonly tools: TrajectoryView['tools'] }) {
  return (
    <details className="tools">
      <summary>{tools.length === 1 ? '1 tool' : `${tools.length} tools`} available</summary>
      <ul>
        {tools.map((tool) => (
          <li key={tool.name}>
            <code>{toHarmless(tool.name)}</code> {toHarmless(tool.description)}
          </li>
        ))}
      </ul>
    </details>
  );
}

function Facts({ facts }: { readonly facts: NonNullable<ConversationEntry['facts']> }) {
  const { tokens, backend, policy_versions: span, finish_reason: finish, retries } = facts;
  const words = [
    `${formatCount(tokens)} tokens`,
    backend === undefined ? '' : `on ${toHarmless(backend)}`,
    span === undefined ? '' : `version ${span.first === span.last ? span.last : `${span.first} to ${span.last}`}`,
    finish === undefined || finish === 'stop' ? '' : `cut: ${finish}`,
    retries ? `${retries} failed calls before` : '',
  ];
  return <span className="faint">{words.filter(Boolean).join(' · ')}</span>;
}

function Call({ call: { name, arguments: given } }: { readonly call: NonNullable<Message['tool_calls']>[number] }) {
  const entries = Object.entries(given);
  return (
    <div className="call">
      <div className="call-name">
        <span aria-hidden="true">▸</span> {toHarmless(name)}
      </div>
      {entries.map(([key, value]) => (
        <div key={key} className="argument">
          {entries.length === 1 ? null : <span className="faint">{toHarmless(key)}</span>}
          <Output text={toArgumentText(value)} />
        </div>
      ))}
    </div>
  );
}
