// One of two siblings, from the segment in which they part.

import type { TrajectoryView } from '@millrace/protocol';
import { useMemo } from 'react';
import { toAddress } from '../logic/address.ts';
import { toArgumentText, toConversation } from '../logic/conversation.ts';
import type { Divergence } from '../logic/diverge.ts';
import { toHarmless } from '../logic/harmless.ts';
import { Empty, Panel, Reward } from '../parts/bits.tsx';
import { Output, Prose } from '../parts/output.tsx';

interface ComparedProps {
  readonly trajectory: TrajectoryView;
  readonly place: Divergence['at'][number];
  readonly reward: number | null;
}

export function Compared({ trajectory, place, reward }: ComparedProps) {
  const entries = useMemo(() => {
    const all = toConversation(trajectory.segments);
    return place === undefined ? [] : all.filter(({ segment }) => segment >= place.segment);
  }, [trajectory, place]);
  return (
    <Panel
      className="compared"
      title={
        <a className="mono" href={toAddress('rollout', trajectory.rollout_id)}>
          {toHarmless(trajectory.rollout_id)}
        </a>
      }
      aside={<Reward value={reward} />}
    >
      {place === undefined ? <Empty>It has no token of its own.</Empty> : null}
      <ol className="conversation">
        {entries.map(({ message, turn, segment }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: messages never move
          <li key={index} className={`message message-${message.role}`}>
            <div className="message-head">
              <span className="role">{message.role === 'tool' ? 'result' : message.role}</span>
              <span className="faint">turn {turn}</span>
              {segment === place?.segment && place.offset > 0 ? (
                <span className="faint">its first {place.offset} tokens are the same</span>
              ) : null}
            </div>
            {message.reasoning === undefined ? null : (
              <div className="reasoning">
                <Prose text={message.reasoning} />
              </div>
            )}
            {message.role === 'tool' ? <Output text={message.content} /> : <Prose text={message.content} />}
            {message.tool_calls?.map((call) => (
              <div key={call.id} className="call">
                <div className="call-name">{toHarmless(call.name)}</div>
                {Object.entries(call.arguments).map(([key, value]) => (
                  <Output key={key} text={toArgumentText(value)} />
                ))}
              </div>
            ))}
          </li>
        ))}
      </ol>
    </Panel>
  );
}
