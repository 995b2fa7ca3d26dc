// Where the time of a rollout went: its stages, its turns with model and tools, and its events.

import type { Event, RolloutView } from '@millrace/protocol';
import { useReply } from '../api/hooks.ts';
import { formatMs, formatTime } from '../logic/format.ts';
import { toHarmless } from '../logic/harmless.ts';
import { type TimeSpan, toStages, toTurnSpans } from '../logic/timeline.ts';
import { Empty, ErrorNote, Panel } from '../parts/bits.tsx';

export function TimeLine({ rollout, revision }: { readonly rollout: RolloutView; readonly revision: unknown }) {
  const { data, error } = useReply<{ events: Event[] }>(`/dashboard/api/rollouts/${encodeURIComponent(rollout.id)}/events`, revision);
  const stages = rollout.result === null ? [] : toStages(rollout.result.timings);
  const turns = toTurnSpans((data?.events ?? []).flatMap(toTurn));
  return (
    <>
      <Panel title="Stages" aside={<span className="faint">of its last attempt; hatched is waiting</span>}>
        {stages.length === 0 ? <Empty>Known when it has ended.</Empty> : <Spans spans={stages} />}
      </Panel>
      <Panel title="Turns" aside={<Key />}>
        {turns.length === 0 ? <Empty>The event log has no turn of it.</Empty> : <Spans spans={turns} />}
      </Panel>
      <Panel title="Events">
        <ErrorNote error={error} />
        {data?.events.length === 0 ? <Empty>The event log no longer has its events.</Empty> : null}
        <ol className="events">
          {data?.events.map((event) => (
            <li key={event.id}>
              <time className="faint">{formatTime(Date.parse(event.at)).slice(11)}</time> <span>{event.kind}</span>{' '}
              <span className="faint">{toHarmless(toFacts(event))}</span>
            </li>
          ))}
        </ol>
      </Panel>
    </>
  );
}

function Key() {
  return (
    <span className="legend">
      <span className="swatch span-model" /> model <span className="swatch span-tool" /> tools
    </span>
  );
}

function toTurn({ kind, at, data }: Event) {
  const { turn, model_ms: model, tool_ms: tool } = data;
  if (kind !== 'turn-end' || typeof turn !== 'number' || typeof model !== 'number') return [];
  return [{ turn, model_ms: model, tool_ms: typeof tool === 'number' ? tool : 0, at: Date.parse(at) }];
}

function toFacts({ data }: Event): string {
  return Object.entries(data)
    .filter(([, value]) => typeof value !== 'object')
    .map(([name, value]) => `${name} ${typeof value === 'number' ? Number(value.toFixed(3)) : value}`)
    .join(', ')
    .slice(0, 300);
}

/** Each span on a line of its own, at its place in time. */
function Spans({ spans }: { readonly spans: readonly TimeSpan[] }) {
  const total = Math.max(1, ...spans.map(({ startMs, ms }) => startMs + ms));
  return (
    <table className="spans">
      <tbody>
        {spans.map((span) => (
          <tr key={`${span.label} ${span.startMs}`}>
            <th scope="row">{span.label}</th>
            <td className="span-track">
              <div
                className={`span span-${span.kind}`}
                style={{ marginLeft: `${(100 * span.startMs) / total}%`, width: `max(2px, ${(100 * span.ms) / total}%)` }}
              />
            </td>
            <td className="number">{formatMs(span.ms)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
