// What a session has done, for its result: the lines in the order in which they began, as branches of one trajectory, and what was not
// exact.

import { isDeepStrictEqual } from 'node:util';
import type { BranchReason } from '@millrace/gateway';
import type { EngineFacts, Message, RewardRule, Segment } from '@millrace/protocol';
import { definedOf } from '@millrace/protocol';
import type { Lineage, SessionReply } from './lineage.ts';

/** In `score.gateway` of the result. */
interface GatewayReport {
  readonly reward_rule: RewardRule;
  readonly branches: readonly BranchReport[];
  /** Of the sampled tokens that later prompts had, the share that was in them with its own ids. */
  readonly exact_share: number;
  readonly carried_tokens: number;
  readonly retokenised: readonly { readonly branch: number | null; readonly turns: number; readonly tokens: number }[];
  /** Turns that were broken off because their client left or the backends failed; their tokens are in the trajectory. */
  readonly broken_turns: number;
  /** Turns of which a stream had shown another text than was read in the end. */
  readonly shown_otherwise: number;
  /** The distinct parameters that clients asked for, and how often. */
  readonly asked: readonly { readonly requests: number; readonly parameters: Readonly<Record<string, unknown>> }[];
}

interface BranchReport {
  readonly branch: number;
  /** Who asked: the agent, a sub-agent, or the harness itself, for a title, a summary or a route. */
  readonly role: BranchRole;
  readonly reason: BranchReason;
  readonly parent: number | null;
  /** The tokens of its prompt that are those of its parent; they are trained there. */
  readonly shared_tokens: number;
  readonly sampled_tokens: number;
  readonly tools: readonly string[];
  /** The rollout's reward, or null if the rule gives it none. */
  readonly reward: number | null;
  /** The share of its loss that the rule gives it. */
  readonly weight: number;
}

type BranchRole = 'main' | 'sub-agent' | 'side-call';

/** The trajectory so far, in the shape of a ledger. */
export interface JoinedLedger {
  readonly segments: readonly Segment[];
  readonly engines: readonly EngineFacts[];
  readonly counts: { readonly prompt: number; readonly sampled: number; readonly observation: number };
  readonly length: number;
  readonly messages: readonly Message[];
}

export class GatewayBook {
  readonly lineages: Lineage[] = [];
  shownOtherwise = 0;
  #carried = 0;
  #broken = 0;
  readonly #retokenised: { readonly turns: number; readonly tokens: number; readonly at: Lineage | undefined }[] = [];
  readonly #asked: { requests: number; readonly parameters: Readonly<Record<string, unknown>> }[] = [];

  noteAsked(parameters: Readonly<Record<string, unknown>>): void {
    const known = this.#asked.find((one) => isDeepStrictEqual(one.parameters, parameters));
    if (known) known.requests += 1;
    else if (this.#asked.length < mostAsked) this.#asked.push({ requests: 1, parameters });
  }

  /** The known turns in a new prompt: by their ids, or from their text. */
  noteContext({ carried, rendered }: { readonly carried: readonly SessionReply[]; readonly rendered: readonly SessionReply[] }): void {
    const count = (some: readonly SessionReply[]) => some.reduce((sum, { value }) => sum + value.tokenIds.length, 0);
    this.#carried += count(carried);
    if (rendered.length > 0) this.#retokenised.push({ turns: rendered.length, tokens: count(rendered), at: this.lineages.at(-1) });
  }

  noteBroken(): void {
    this.#broken += 1;
  }

  /** A line in which nothing was sampled, and nothing will be. */
  drop(lineage: Lineage): void {
    const at = this.lineages.indexOf(lineage);
    if (at >= 0) this.lineages.splice(at, 1);
    lineage.sampler[Symbol.dispose]();
  }

  /** Lines without a sampled token are left out. */
  get branches(): readonly Lineage[] {
    return this.lineages.filter(({ sampledTokens }) => sampledTokens > 0);
  }

  get ledger(): JoinedLedger {
    const engines: EngineFacts[] = [];
    let turns = 0;
    const segments = this.branches.flatMap(({ ledger }, branch) => {
      const known = ledger.engines.map((engine) => {
        const at = engines.findIndex((one) => isDeepStrictEqual(one, engine));
        return at >= 0 ? at : engines.push(engine) - 1;
      });
      const before = turns;
      turns += ledger.turn;
      return ledger.segments.map((segment) => ({
        ...segment,
        turn: segment.turn + before,
        ...definedOf({ branch: branch === 0 ? undefined : branch }),
        ...definedOf({ provenance: segment.provenance === undefined ? undefined : known[segment.provenance] }),
      }));
    });
    const counts = { prompt: 0, sampled: 0, observation: 0 };
    for (const { ledger } of this.branches)
      for (const kind of ['prompt', 'sampled', 'observation'] as const) counts[kind] += ledger.counts[kind];
    const last = this.#last;
    return { segments, engines, counts, length: segments.length, messages: last?.ledger.messages ?? [] };
  }

  toReport(rule: RewardRule, reward: number | null): GatewayReport {
    const branches = this.branches;
    const numberOf = (lineage: Lineage | undefined): number | null => {
      if (!lineage) return null;
      return branches.includes(lineage) ? branches.indexOf(lineage) : numberOf(lineage.parent);
    };
    const sampled = branches.reduce((sum, { sampledTokens }) => sum + sampledTokens, 0);
    const weights = {
      all: () => 1,
      last: (lineage: Lineage) => (lineage === this.#last ? 1 : 0),
      weighted: (lineage: Lineage) => lineage.sampledTokens / sampled,
    };
    const rendered = this.#retokenised.reduce((sum, { tokens }) => sum + tokens, 0);
    return {
      reward_rule: rule,
      branches: branches.map((lineage, branch) => ({
        branch,
        role: toRole(lineage, branches),
        reason: lineage.reason,
        parent: numberOf(lineage.parent),
        shared_tokens: numberOf(lineage.parent) === null ? 0 : lineage.sharedTokens,
        sampled_tokens: lineage.sampledTokens,
        tools: lineage.tools.map(({ name }) => name),
        reward: weights[rule](lineage) > 0 ? reward : null,
        weight: weights[rule](lineage),
      })),
      exact_share: this.#carried + rendered === 0 ? 1 : this.#carried / (this.#carried + rendered),
      carried_tokens: this.#carried,
      retokenised: this.#retokenised.map(({ at, ...counts }) => ({ branch: numberOf(at), ...counts })),
      broken_turns: this.#broken,
      shown_otherwise: this.shownOtherwise,
      asked: this.#asked,
    };
  }

  /** The line that completed a turn last. */
  get #last(): Lineage | undefined {
    return this.branches.reduce<Lineage | undefined>((last, one) => (!last || one.lastTurn > last.lastTurn ? one : last), undefined);
  }
}

/** A line without tools, where others have some, is asked by the harness for itself: what it says is no act of the agent. */
function toRole(lineage: Lineage, branches: readonly Lineage[]): BranchRole {
  const isSide = ({ tools }: Lineage) => tools.length === 0 && branches.some((one) => one.tools.length > 0);
  if (isSide(lineage)) return 'side-call';
  const main = branches.find((one) => !isSide(one));
  const root = rootOf(lineage);
  return root.reason === 'sub-agent' && main && root !== rootOf(main) ? 'sub-agent' : 'main';
}

function rootOf(lineage: Lineage): Lineage {
  return lineage.parent ? rootOf(lineage.parent) : lineage;
}

/** Distinct sets of parameters; a client that asks for more is not recorded further. */
const mostAsked = 100;
