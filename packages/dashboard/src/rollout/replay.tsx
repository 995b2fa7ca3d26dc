// Goes through a conversation turn by turn: what the agent had seen when it decided.

import { usePageKeys } from '../parts/shortcuts.tsx';
import type { ShownPart } from './conversation.tsx';

export function Replay({ turns, part }: { readonly turns: readonly number[]; readonly part: ShownPart }) {
  const at = part.turn === undefined ? -1 : turns.findLastIndex((turn) => turn <= (part.turn ?? 0));
  const go = (index: number) => {
    const turn = turns[Math.max(0, Math.min(turns.length - 1, index))];
    if (turn !== undefined) part.onChange({ turn });
  };
  usePageKeys((key) => {
    if (key === '.') go(at + 1);
    else if (key === ',' && part.turn !== undefined) go(at - 1);
  });
  if (turns.length < 2) return null;
  if (part.turn === undefined)
    return (
      <button type="button" className="chip" onClick={() => go(0)} title="Turn by turn; key . and ,">
        ▷ replay
      </button>
    );
  return (
    <div className="replay">
      <button type="button" className="chip" onClick={() => go(at - 1)} disabled={at <= 0} aria-label="Previous turn">
        ◁
      </button>
      <input
        type="range"
        min={0}
        max={turns.length - 1}
        value={Math.max(0, at)}
        aria-label="Turn"
        aria-valuetext={`turn ${turns[at] ?? 0}`}
        onChange={(event) => go(Number(event.target.value))}
      />
      <span role="status">
        turn {at + 1} of {turns.length}
      </span>
      <button type="button" className="chip" onClick={() => go(at + 1)} disabled={at >= turns.length - 1} aria-label="Next turn">
        ▷
      </button>
      <button type="button" className="chip" onClick={() => part.onChange({ turn: undefined })}>
        show all
      </button>
    </div>
  );
}
