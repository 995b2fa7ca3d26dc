// The data as the API gives it.

import type { DashboardTask, RolloutView, TrajectoryView } from '@millrace/protocol';
import { useReply } from '../api/hooks.ts';
import { Panel } from '../parts/bits.tsx';
import { Output } from '../parts/output.tsx';

interface RawDataProps {
  readonly rollout: RolloutView;
  readonly trajectory: TrajectoryView | undefined;
}

export function RawData({ rollout, trajectory }: RawDataProps) {
  const { data: task } = useReply<DashboardTask>(`/dashboard/api/rollouts/${encodeURIComponent(rollout.id)}/task`);
  const { segments: _, ...rest } = trajectory ?? { segments: [] };
  return (
    <>
      <Panel title="Rollout">
        <Output text={JSON.stringify(rollout, undefined, 2)} />
      </Panel>
      {task === undefined ? null : (
        <Panel title="Submission">
          <Output text={JSON.stringify(task.submission, undefined, 2)} />
        </Panel>
      )}
      {trajectory === undefined ? null : (
        <Panel title="Trajectory, without its segments">
          <Output text={JSON.stringify(rest, undefined, 2)} />
        </Panel>
      )}
    </>
  );
}
