// What an exported page holds, and how it answers the requests of its own scripts: as a viewer without a service would.

import type { BriefQuery, DashboardSession, DashboardTask, Event, RolloutView, TokenPieces, TrajectoryView } from '@millrace/protocol';
import { RolloutIndex } from './rollout-index.ts';

export interface ExportedRollout {
  readonly view: RolloutView;
  /** Null where there is none, as for a rollout that never ran. */
  readonly trajectory: TrajectoryView | null;
  readonly task: DashboardTask | null;
  readonly events: readonly Event[];
}

export interface ExportedData {
  readonly title: string;
  /** The oldest first. */
  readonly rollouts: readonly ExportedRollout[];
  /** Of the tokens of all trajectories. */
  readonly pieces: TokenPieces;
}

/** The element of the page that holds the data. */
export const exportedDataId = 'millrace-data';

/** The reply to a request; undefined for what the page does not hold. */
export function openExported({ title, rollouts, pieces }: ExportedData): (path: string) => unknown {
  const index = new RolloutIndex(() => performance.now());
  for (const { view } of rollouts) index.set(view);
  index.markComplete();
  const byId = new Map(rollouts.map((one) => [String(one.view.id), one]));
  const session: DashboardSession = { right: 'read', live: false, title };
  const readOne = (path: string): unknown => {
    const [, id = '', part = ''] = /^\/(?:v1|dashboard\/api)\/rollouts\/([^/]+)(?:\/(\w+))?$/.exec(path) ?? [];
    const one = byId.get(decodeURIComponent(id));
    if (one === undefined) return undefined;
    const parts: Readonly<Record<string, unknown>> = {
      '': one.view,
      trajectory: one.trajectory ?? undefined,
      task: one.task ?? undefined,
      events: { events: one.events },
      pieces,
    };
    return Object.hasOwn(parts, part) ? parts[part] : undefined;
  };
  return (address) => {
    const [path = '', search = ''] = address.split('?', 2);
    if (path === '/dashboard/api/session') return session;
    if (path === '/dashboard/api/rollouts') return index.page(toBriefQuery(new URLSearchParams(search)));
    if (path === '/dashboard/api/summary') return index.summary();
    return readOne(path);
  };
}

const numbers: ReadonlySet<string> = new Set(['reward_min', 'reward_max', 'version', 'offset', 'limit']);

/** The page writes these queries itself, so they are not checked again. */
function toBriefQuery(search: URLSearchParams): BriefQuery {
  const given = Object.fromEntries([...search].map(([name, value]) => [name, numbers.has(name) ? Number(value) : value]));
  return { sort: 'created', order: 'desc', offset: 0, limit: 200, ...given };
}
