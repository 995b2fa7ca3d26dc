// The conversation as a person reads it: who said what, which tools were called with what, and what they answered.

import type { Message, TrajectoryView } from '@millrace/protocol';
import { useMemo, useRef, useState } from 'react';
import { type ConversationEntry, toArgumentText, toConversation } from '../logic/conversation.ts';
import { formatCount } from '../logic/format.ts';
import { toHarmless } from '../logic/harmless.ts';
import { listBranches } from '../logic/tokens.ts';
import { Output, Prose } from '../parts/output.tsx';
import { usePageKeys } from '../parts/shortcuts.tsx';

export function Conversation({ trajectory }: { readonly trajectory: TrajectoryView }) {
  const { segments, tools } = trajectory;
  const branches = useMemo(() => [...listBranches(segments).keys()], [segments]);
  const [branch, setBranch] = useState(0);
  const [shows, setShows] = useState({ reasoning: true, tools: true });
  const entries = useMemo(() => toConversation(segments, branch), [segments, branch]);
  const box = useRef<HTMLOListElement>(null);
  usePageKeys((key) => {
    if (key === 'j' || key === 'k') scrollToTurn(box.current, key === 'j' ? 1 : -1);
  });
  return (
    <>
      <div className="toolbar">
        <Branches branches={branches} branch={branch} onChange={setBranch} />
        <label>
          <input type="checkbox" checked={shows.reasoning} onChange={() => setShows({ ...shows, reasoning: !shows.reasoning })} /> reasoning
        </label>
        <label>
          <input type="checkbox" checked={shows.tools} onChange={() => setShows({ ...shows, tools: !shows.tools })} /> tool calls and
          results
        </label>
        {tools.length === 0 ? null : (
          <details className="tools">
            <summary>{tools.length} tools available</summary>
            <ul>
              {tools.map((tool) => (
                <li key={tool.name}>
                  <code>{toHarmless(tool.name)}</code> {toHarmless(tool.description)}
                </li>
              ))}
            </ul>
          </details>
        )}
      </div>
      <ol className="conversation" ref={box}>
        {entries
          .filter(({ message }) => shows.tools || message.role !== 'tool')
          .map((entry, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: messages never move
            <Entry key={index} entry={entry} shows={shows} />
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

interface BranchesProps {
  readonly branches: readonly number[];
  readonly branch: number;
  readonly onChange: (branch: number) => void;
}

/** The history was rewritten once for each further branch. */
export function Branches({ branches, branch, onChange }: BranchesProps) {
  if (branches.length < 2) return null;
  return (
    <fieldset className="branches">
      <legend className="visually-hidden">Branch</legend>
      {branches.map((number) => (
        <button
          key={number}
          type="button"
          className={`chip ${number === branch ? 'chip-on' : ''}`}
          aria-pressed={number === branch}
          onClick={() => onChange(number)}
        >
          branch {number + 1}
        </button>
      ))}
    </fieldset>
  );
}

interface EntryProps {
  readonly entry: ConversationEntry;
  readonly shows: { readonly reasoning: boolean; readonly tools: boolean };
}

function Entry({ entry: { message, turn, facts }, shows }: EntryProps) {
  const isTurn = message.role === 'assistant';
  return (
    <li className={`message message-${message.role}`} {...(isTurn ? { 'data-turn-start': turn } : {})}>
      <div className="message-head">
        <span className="role">
          {message.role === 'tool' ? `result${message.name ? ` of ${toHarmless(message.name)}` : ''}` : message.role}
        </span>
        {isTurn ? <span className="faint">turn {turn}</span> : null}
        {isTurn && facts !== undefined ? <Facts facts={facts} /> : null}
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
