// The branches of a rollout as a tree, to choose from: where the history was rewritten, and which agent asked.

import type { RolloutView, TrajectoryView } from '@millrace/protocol';
import { useMemo } from 'react';
import { type BranchNode, toBranchTree } from '../logic/branch-tree.ts';
import { formatCount, formatNumber } from '../logic/format.ts';
import { toHarmless } from '../logic/harmless.ts';

export function useBranchTree(trajectory: TrajectoryView, rollout: RolloutView): readonly BranchNode[] {
  return useMemo(() => toBranchTree(trajectory.segments, rollout.result?.score), [trajectory, rollout]);
}

interface BranchTreeProps {
  readonly tree: readonly BranchNode[];
  readonly branch: number;
  readonly onChange: (branch: number) => void;
}

/** Nothing for a rollout with a single history. */
export function BranchTree({ tree, branch, onChange }: BranchTreeProps) {
  if (tree.length < 2) return null;
  return (
    <fieldset className="branch-tree">
      <legend>{tree.length} branches</legend>
      {tree.map((node) => (
        <button
          key={node.branch}
          type="button"
          className={node.branch === branch ? 'branch branch-on' : 'branch'}
          style={{ marginLeft: `${node.depth * 22}px` }}
          aria-pressed={node.branch === branch}
          onClick={() => onChange(node.branch)}
        >
          <strong>{node.branch + 1}</strong>
          {node.role === undefined ? null : <span className="tag tone-faint">{toHarmless(node.role)}</span>}
          <span className="faint">{describe(node)}</span>
        </button>
      ))}
    </fieldset>
  );
}

function describe({ parent, shared, sampled, turns, role, reason, reward }: BranchNode): string {
  return [
    parent === undefined ? '' : `leaves ${parent + 1} after ${formatCount(shared)} tokens`,
    reason === undefined || reason === 'opening' || reason === role ? '' : toHarmless(reason),
    `${turns} ${turns === 1 ? 'turn' : 'turns'}`,
    `${formatCount(sampled)} sampled`,
    reward === undefined ? '' : `reward ${formatNumber(reward)}`,
  ]
    .filter(Boolean)
    .join(' · ');
}
