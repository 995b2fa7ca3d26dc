// The branches of a trajectory as a tree: from which other one each begins, and after how many tokens. A gateway reports this, with the
// role of each; otherwise it is found from the tokens that branches share.

import { listBranches, type SegmentView, type TokenColumns, toColumns } from './tokens.ts';

export interface BranchNode {
  readonly branch: number;
  /** The first branch has depth 0, and so has any that shares nothing. */
  readonly depth: number;
  readonly parent: number | undefined;
  /** With its parent. */
  readonly shared: number;
  readonly sampled: number;
  readonly turns: number;
  readonly role?: string;
  readonly reason?: string;
  readonly reward?: number | null;
  /** The names of its tools, where they are known for it alone. */
  readonly tools?: readonly string[];
}

type Known = Pick<BranchNode, 'branch' | 'parent' | 'shared' | 'role' | 'reason' | 'reward' | 'tools'>;

/** Each parent before its children. `score` is that of the result. */
export function toBranchTree(segments: readonly SegmentView[], score: Readonly<Record<string, unknown>> = {}): BranchNode[] {
  const branches = listBranches(segments);
  const reported = readReport(score);
  const links = reported.size > 0 ? reported : findLinks(segments, branches);
  const nodes: BranchNode[] = [];
  const add = (branch: number, depth: number) => {
    const own = (branches.get(branch) ?? []).flatMap((index) => segments[index] ?? []);
    const sampled = own.filter(({ kind }) => kind === 'sampled');
    nodes.push({
      ...(links.get(branch) ?? { branch, parent: undefined, shared: 0 }),
      depth,
      sampled: sampled.reduce((sum, { token_ids }) => sum + token_ids.length, 0),
      turns: new Set(sampled.map(({ turn }) => turn)).size,
    });
    for (const child of branches.keys()) if (child !== branch && links.get(child)?.parent === branch) add(child, depth + 1);
  };
  // A parent begins before its children, so this reaches each branch once.
  for (const branch of branches.keys()) if (links.get(branch)?.parent === undefined) add(branch, 0);
  return nodes;
}

function findLinks(segments: readonly SegmentView[], branches: ReadonlyMap<number, readonly number[]>): Map<number, Known> {
  const before: { readonly branch: number; readonly columns: TokenColumns }[] = [];
  const links = new Map<number, Known>();
  for (const [branch, indexes] of branches) {
    const columns = toColumns(segments, indexes);
    const shared = before.map((one) => ({ parent: one.branch, shared: countShared(one.columns.ids, columns.ids) }));
    const best = shared.reduce<(typeof shared)[number] | undefined>(
      (most, one) => (one.shared > (most?.shared ?? 0) ? one : most),
      undefined,
    );
    links.set(branch, { branch, parent: best?.parent, shared: best?.shared ?? 0 });
    before.push({ branch, columns });
  }
  return links;
}

function countShared(one: Int32Array, other: Int32Array): number {
  const most = Math.min(one.length, other.length);
  let at = 0;
  while (at < most && one[at] === other[at]) at += 1;
  return at;
}

/** What a gateway says in the score of its rollout. Anything that does not look so is left out: a verifier may use the same name. */
function readReport({ gateway }: Readonly<Record<string, unknown>>): Map<number, Known> {
  const listed = isRecord(gateway) && Array.isArray(gateway.branches) ? gateway.branches.filter(isRecord) : [];
  return new Map(
    listed.flatMap(({ branch, parent, shared_tokens: shared, role, reason, reward, tools }): [number, Known][] => {
      if (typeof branch !== 'number') return [];
      const known: Known = {
        branch,
        parent: typeof parent === 'number' && parent < branch ? parent : undefined,
        shared: typeof shared === 'number' ? shared : 0,
        ...(typeof role === 'string' && { role }),
        ...(typeof reason === 'string' && { reason }),
        ...((typeof reward === 'number' || reward === null) && { reward }),
        ...(Array.isArray(tools) && { tools: tools.map(String) }),
      };
      return [[branch, known]];
    }),
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
