// Every token of a trajectory, coloured by what the reader asks for. Blocks of tokens are drawn when they come near the screen, so that a
// trajectory of any length opens at once.

import type { TokenPieces, TrainerSampleList, TrajectoryView } from '@millrace/protocol';
import { memo, type PointerEvent, useEffect, useMemo, useRef, useState } from 'react';
import { useReply, useSurroundings } from '../api/hooks.ts';
import type { BranchNode } from '../logic/branch-tree.ts';
import { type Colouring, colourings, colourOf, toLegend, toPercent, trainerColourings } from '../logic/colours.ts';
import { formatCount, formatNumber, formatShare } from '../logic/format.ts';
import { toHarmless, toVisibleToken } from '../logic/harmless.ts';
import { listBranches, summariseLogprobs, type TokenBlock, type TokenColumns, toBlocks, toColumns } from '../logic/tokens.ts';
import { type TrainerColumns, toTrainerColumns } from '../logic/trainer.ts';
import { BranchTree } from './branch-tree.tsx';
import type { ShownPart } from './conversation.tsx';

const blockSize = 256;
/** Until it is drawn; a token takes about this many pixels of a block's height. */
const pixelsPerToken = 0.9;

interface Drawing {
  readonly trajectory: TrajectoryView;
  readonly columns: TokenColumns;
  readonly pieces: Readonly<Record<string, string>> | null;
  readonly by: Colouring;
  readonly trainer: TrainerColumns | undefined;
}

interface TokenViewProps {
  readonly trajectory: TrajectoryView;
  readonly tree: readonly BranchNode[];
  readonly part: ShownPart;
  readonly by: Colouring;
  readonly onColour: (by: Colouring) => void;
  /** Absent while they are read. */
  readonly texts: TokenPieces | undefined;
}

export function TokenView({ trajectory, tree, part, by, onColour, texts: data }: TokenViewProps) {
  const { segments } = trajectory;
  const { branch } = part;
  const [hovered, setHovered] = useState<number | undefined>();
  const branches = useMemo(() => listBranches(segments), [segments]);
  const columns = useMemo(() => toColumns(segments, branches.get(branch) ?? []), [segments, branches, branch]);
  const blocks = useMemo(() => toBlocks(columns, blockSize), [columns]);
  const trainer = useTrainer(trajectory, branch);
  const drawing = useMemo<Drawing>(
    () => ({ trajectory, columns, pieces: data?.pieces ?? null, by, trainer }),
    [trajectory, columns, data, by, trainer],
  );
  const onPointer = (event: PointerEvent) => {
    const at = event.target instanceof HTMLElement ? event.target.dataset.at : undefined;
    setHovered(at === undefined ? undefined : Number(at));
  };
  return (
    <>
      <div className="toolbar">
        <fieldset className="branches">
          <legend>colour by</legend>
          {[...colourings, ...(trainer === undefined ? [] : trainerColourings)].map((name) => (
            <button
              key={name}
              type="button"
              className={`chip ${name === by ? 'chip-on' : ''}`}
              aria-pressed={name === by}
              onClick={() => onColour(name)}
            >
              {name}
            </button>
          ))}
        </fieldset>
        <Legend by={by} trajectory={trajectory} />
      </div>
      <BranchTree tree={tree} branch={branch} onChange={(next) => part.onChange({ branch: next, turn: undefined })} />
      <Numbers columns={columns} trajectory={trajectory} />
      {data?.pieces === null ? <p className="note">{toHarmless(data.reason ?? 'Tokens are shown by their ids.')}</p> : null}
      <div className="tokens" onPointerOver={onPointer} data-count={columns.ids.length}>
        {data === undefined ? null : blocks.map((block) => <Block key={block.from} block={block} drawing={drawing} />)}
      </div>
      <TokenFacts drawing={drawing} at={hovered} />
    </>
  );
}

/** What a trainer posted of this branch. */
function useTrainer({ rollout_id, segments }: TrajectoryView, branch: number): TrainerColumns | undefined {
  const { session } = useSurroundings();
  const path = `/v1/rollouts/${encodeURIComponent(rollout_id)}/trainer`;
  const { data } = useReply<TrainerSampleList>(session.live ? path : undefined);
  return useMemo(() => (data === undefined ? undefined : toTrainerColumns(segments, branch, data)), [segments, branch, data]);
}

function numbersOf({ columns, trainer }: Drawing, at: number) {
  const logprob = columns.logprob[at] ?? Number.NaN;
  if (trainer === undefined) return { logprob };
  const [recomputed = Number.NaN, advantage = Number.NaN, kl = Number.NaN] = [
    trainer.recomputed[at],
    trainer.advantage[at],
    trainer.kl[at],
  ];
  return { logprob, recomputed, advantage, kl };
}

function Legend({ by, trajectory }: { readonly by: Colouring; readonly trajectory: TrajectoryView }) {
  return (
    <ul className="legend" aria-label="Colours">
      {toLegend(by, trajectory.segments).map(({ colour, label }) => (
        <li key={label}>
          <span className={`swatch ${colour}`} /> {label}
        </li>
      ))}
    </ul>
  );
}

function Numbers({ columns, trajectory }: { readonly columns: TokenColumns; readonly trajectory: TrajectoryView }) {
  const summary = useMemo(() => summariseLogprobs(columns.logprob), [columns]);
  const { length } = columns.ids;
  const words = [
    `${length.toLocaleString('en')} tokens`,
    `${formatShare((summary?.count ?? 0) / Math.max(1, length))} trained on`,
    summary === undefined ? '' : `mean logprob ${formatNumber(summary.mean)}`,
    summary === undefined ? '' : `lowest ${formatNumber(summary.lowest, 2)}`,
    summary === undefined ? '' : `${formatCount(summary.surprising)} below 1 %`,
    `${trajectory.segments.length} segments`,
    toHarmless(trajectory.model),
  ];
  return <p className="faint small">{words.filter(Boolean).join(' · ')}</p>;
}

const Block = memo(function Block({ block, drawing }: { readonly block: TokenBlock; readonly drawing: Drawing }) {
  const box = useRef<HTMLDivElement>(null);
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (element === null || isNear) return;
    const watch = new IntersectionObserver(([entry]) => entry?.isIntersecting && setNear(true), { rootMargin: '1200px' });
    watch.observe(element);
    return () => watch.disconnect();
  }, [isNear]);
  const segment = drawing.trajectory.segments[block.segment];
  if (segment === undefined) return null;
  const height = isNear ? {} : { minHeight: (block.to - block.from) * pixelsPerToken };
  return (
    <div ref={box} style={height} className="block">
      {block.isFirst ? (
        <div className="segment-head">
          <span className={`swatch tk-${segment.kind}`} /> {segment.kind} · turn {segment.turn} · {formatCount(segment.token_ids.length)}{' '}
          tokens
          {segment.backend === undefined ? '' : ` · ${toHarmless(segment.backend)}`}
          {segment.policy_versions === undefined ? '' : ` · version ${segment.policy_versions.last}`}
          {segment.finish_reason === undefined ? '' : ` · ${segment.finish_reason}`}
        </div>
      ) : null}
      {isNear ? <Tokens block={block} drawing={drawing} /> : null}
    </div>
  );
});

function Tokens({ block, drawing }: { readonly block: TokenBlock; readonly drawing: Drawing }) {
  const { trajectory, columns, pieces, by } = drawing;
  const segment = trajectory.segments[block.segment];
  if (segment === undefined) return null;
  return Array.from({ length: block.to - block.from }, (_, offset) => {
    const at = block.from + offset;
    const id = columns.ids[at] ?? 0;
    const piece = pieces?.[id];
    return (
      <span key={at} data-at={at} className={`tk ${colourOf(by, segment, numbersOf(drawing, at))}`}>
        {piece === undefined ? `${id} ` : toVisibleToken(piece)}
        {piece?.includes('\n') ? <br /> : null}
      </span>
    );
  });
}

function TokenFacts({ drawing, at }: { readonly drawing: Drawing; readonly at: number | undefined }) {
  const { trajectory, columns, pieces, trainer } = drawing;
  if (at === undefined) return <div className="token-facts faint">Point at a token for its id and logprob.</div>;
  const id = columns.ids[at] ?? 0;
  const { logprob, recomputed = Number.NaN, advantage = Number.NaN, kl = Number.NaN } = numbersOf(drawing, at);
  const segment = trajectory.segments[columns.segment[at] ?? 0];
  return (
    <div className="token-facts">
      <code className="token-text">{toVisibleToken(pieces?.[id] ?? '')}</code>
      <span>
        id <strong>{id}</strong>
      </span>
      <span>position {at}</span>
      <span>{Number.isNaN(logprob) ? 'not sampled' : `logprob ${logprob.toFixed(4)} (${toPercent(logprob)})`}</span>
      <span>mask {segment?.mask}</span>
      <span>
        {segment?.kind}, turn {segment?.turn}
      </span>
      {segment?.policy_versions === undefined ? null : <span>version {segment.policy_versions.last}</span>}
      {segment?.backend === undefined ? null : <span>{toHarmless(segment.backend)}</span>}
      {Number.isNaN(recomputed) ? null : (
        <span>
          recomputed {recomputed.toFixed(4)} (by {(recomputed - logprob).toFixed(4)})
        </span>
      )}
      {Number.isNaN(advantage) ? null : <span>advantage {formatNumber(advantage, 4)}</span>}
      {Number.isNaN(kl) ? null : <span>KL {formatNumber(kl, 5)}</span>}
      {trainer === undefined ? null : (
        <span>
          step {trainer.step} of {toHarmless(trainer.run)}
        </span>
      )}
    </div>
  );
}
