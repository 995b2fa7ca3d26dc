// The token ledger: the only place where token ids are joined. At every moment it holds exactly what the model saw and sampled. It is
// append-only, so each prompt starts with the whole previous prompt. A rewritten history starts a new branch with its own prompt.

import { isDeepStrictEqual } from 'node:util';
import type { BackendId, EngineFacts, FinishReason, Message, RoutedExperts, SamplingMask, Segment, StoppedBy } from '@millrace/protocol';
import { definedOf } from '@millrace/protocol';
import { bytesPerId, refuse, toLogprobs, toTokenIds, writeDecimal } from './numbers.ts';

export interface Rendered {
  readonly tokenIds: ArrayLike<number>;
  readonly text: string;
  readonly messages: readonly Message[];
}

export interface Sampled extends Rendered {
  /** One per id. */
  readonly logprobs: ArrayLike<number>;
  readonly finishReason: FinishReason;
  readonly stoppedBy?: StoppedBy;
  readonly backend: BackendId;
  readonly policyVersions: { readonly first: number; readonly last: number };
  readonly retries: number;
  /** The LoRA adapter that sampled it. */
  readonly adapter?: string;
  /** What sampled it. */
  readonly engine?: EngineFacts;
  /** One row for each token of the context including these ids, except the last and those before its `from`. */
  readonly routedExperts?: RoutedExperts;
  /** A mask for each id. */
  readonly samplingMask?: SamplingMask;
}

/** What a ledger consists of: another one that is made from it is equal. */
interface LedgerParts {
  readonly segments: readonly Segment[];
  readonly engines: readonly EngineFacts[];
  /** The last segment is a text in the policy's own turn. */
  readonly isContinued: boolean;
}

const noLogprobs = new Float32Array(0);

export class Ledger {
  readonly #segments: Segment[] = [];
  readonly #engines: EngineFacts[] = [];
  readonly #counts = { prompt: 0, sampled: 0, observation: 0 };
  #turn = 0;
  #branch = 0;
  /** Where the current branch starts in `#segments`. */
  #branchStart = 0;
  #thoughts = 0;
  /** Whether the last segment is a text in the policy's own turn. */
  #isContinued = false;
  #length = 0;
  /** How many tokens of the current branch have their experts in a segment. */
  #routed = 0;
  #json = Buffer.allocUnsafeSlow(4096);
  #jsonLength = 0;

  /** Throws if the parts cannot be those of a ledger. */
  static from({ segments, engines, isContinued }: LedgerParts): Ledger {
    const ledger = new Ledger();
    ledger.#engines.push(...engines);
    for (const segment of segments) ledger.#restore(segment);
    ledger.#isContinued = isContinued;
    return ledger;
  }

  #restore(segment: Segment): void {
    const { kind, turn, branch = 0, tokenIds, logprobs, provenance, routedExperts } = segment;
    if (kind === 'prompt') this.#startBranch(branch);
    else this.#requirePrompt();
    if (branch !== this.#branch || turn < this.#turn || (provenance ?? -1) >= this.#engines.length)
      throw refuse(`a segment of turn ${turn} in branch ${branch} after turn ${this.#turn}`);
    if (logprobs.length !== (kind === 'sampled' ? tokenIds.length : 0))
      throw refuse(`${logprobs.length} logprobs in a segment that is ${kind}`);
    this.#counts[kind === 'inserted' ? 'observation' : kind] += this.#join(tokenIds).length;
    this.#turn = turn;
    this.#thoughts += countThoughts(segment);
    this.#segments.push(segment);
    if (routedExperts) this.#routed = this.#length - 1;
  }

  get isContinued(): boolean {
    return this.#isContinued;
  }

  /** The number of ids in the current branch: the context. */
  get length(): number {
    return this.#length;
  }

  /** The messages of the current branch. */
  get messages(): readonly Message[] {
    return this.#segments.slice(this.#branchStart).flatMap(({ messages }) => messages);
  }

  /** How many messages of the current branch have their reasoning in the context. An opening may have others, whose reasoning was dropped. */
  get thoughts(): number {
    return this.#thoughts;
  }

  /** The turn of the newest segment. */
  get turn(): number {
    return this.#turn;
  }

  /** Whether the last turn was cut while it was sampled, so that the next sampled segment continues it. */
  get isCut(): boolean {
    const { kind, finish_reason } = this.#segments.at(-1) ?? {};
    return kind === 'sampled' && finish_reason === 'abort';
  }

  /** The policy versions of the first and of the newest sampled token; undefined before the first. */
  get policyVersions(): { readonly first: number; readonly last: number } | undefined {
    const first = this.#segments.find(({ kind }) => kind === 'sampled')?.policy_versions;
    const last = this.#segments.findLast(({ kind }) => kind === 'sampled')?.policy_versions;
    return first && last && { first: first.first, last: last.last };
  }

  /** The first tokens of the current branch whose experts a segment has, and the shape of a row; undefined if there are none. */
  get knownExperts(): { readonly tokens: number; readonly shape: readonly number[] } | undefined {
    if (this.#routed === 0) return undefined;
    const shape = this.#segments.findLast(({ routedExperts }) => routedExperts)?.routedExperts?.shape;
    return shape && { tokens: this.#routed, shape };
  }

  get segments(): readonly Segment[] {
    return this.#segments;
  }

  /** The distinct engines that sampled; `provenance` of a segment is an index into it. */
  get engines(): readonly EngineFacts[] {
    return this.#engines;
  }

  /** Inserted ids count as observation, because neither was sampled. */
  get counts(): { readonly prompt: number; readonly sampled: number; readonly observation: number } {
    return { ...this.#counts };
  }

  /** All ids of the current branch in decimal, separated by commas. A returned buffer never changes: later ids are written after its end. */
  get promptJson(): Buffer {
    return this.#json.subarray(0, this.#jsonLength);
  }

  appendPrompt(opening: Rendered): void {
    if (this.#segments.length > 0) throw refuse('a second prompt');
    if (opening.tokenIds.length === 0) throw refuse('an empty prompt');
    const tokenIds = this.#join(opening.tokenIds);
    this.#counts.prompt += tokenIds.length;
    this.#push('prompt', opening, { tokenIds, logprobs: noLogprobs });
  }

  /** The policy continues from this opening alone; earlier branches stay as they were sampled. */
  beginBranch(opening: Rendered): void {
    this.#requirePrompt();
    const ids = toTokenIds(opening.tokenIds);
    if (ids.length === 0) throw refuse('an empty prompt');
    this.#startBranch(this.#branch + 1);
    const tokenIds = this.#join(ids);
    this.#counts.prompt += tokenIds.length;
    this.#push('prompt', opening, { tokenIds, logprobs: noLogprobs });
  }

  #startBranch(branch: number): void {
    this.#branch = branch;
    this.#branchStart = this.#segments.length;
    this.#thoughts = 0;
    this.#length = 0;
    this.#routed = 0;
    this.#json = Buffer.allocUnsafeSlow(4096); // a request in flight may still read the old one
    this.#jsonLength = 0;
  }

  appendSampled(sampled: Sampled): void {
    this.#requirePrompt();
    const logprobs = toLogprobs(sampled);
    const routed = this.#cutExperts(sampled);
    const { samplingMask, adapter } = sampled;
    if (samplingMask && samplingMask.lengths.length !== sampled.tokenIds.length)
      throw refuse(`${samplingMask.lengths.length} sampling masks for ${sampled.tokenIds.length} sampled ids`);
    const tokenIds = this.#join(sampled.tokenIds);
    if (this.#isContinued) this.#dropMessages();
    if (!this.isCut) this.#turn += 1;
    this.#counts.sampled += tokenIds.length;
    const { first, last } = sampled.policyVersions;
    this.#push('sampled', sampled, {
      tokenIds,
      logprobs,
      finish_reason: sampled.finishReason,
      ...definedOf({ stopped_by: sampled.stoppedBy }),
      backend: sampled.backend,
      policy_versions: { first, last },
      ...definedOf({ provenance: sampled.engine && this.#noteEngine(sampled.engine) }),
      retries: sampled.retries,
      ...definedOf({ adapter, routedExperts: routed, samplingMask }),
    });
    if (routed) this.#routed = this.#length - 1;
  }

  /** Tool results and the template's text around them. */
  appendObservation(observation: Rendered): void {
    this.#appendUnsampled('observation', observation);
  }

  /** Text in the policy's own turn, which the next sampled segment continues. Its message is that of the whole turn so far. */
  appendContinuation(observation: Rendered): void {
    this.#dropMessages();
    this.#appendUnsampled('observation', observation);
    this.#isContinued = true;
  }

  /** The end of a turn that was cut off before the policy sampled one. */
  appendInserted(inserted: { readonly tokenIds: ArrayLike<number>; readonly text: string }): void {
    this.#appendUnsampled('inserted', { ...inserted, messages: [] });
  }

  #appendUnsampled(kind: 'observation' | 'inserted', rendered: Rendered): void {
    this.#requirePrompt();
    const tokenIds = this.#join(rendered.tokenIds);
    this.#counts.observation += tokenIds.length;
    this.#push(kind, rendered, { tokenIds, logprobs: noLogprobs });
  }

  #push(kind: Segment['kind'], { text, messages }: Rendered, rest: Omit<Segment, 'kind' | 'turn' | 'branch' | 'text' | 'messages'>): void {
    const branch = this.#branch === 0 ? undefined : this.#branch;
    this.#isContinued = false;
    this.#thoughts += countThoughts({ kind, text, messages });
    this.#segments.push({ kind, turn: this.#turn, ...definedOf({ branch }), text, messages: [...messages], ...rest });
  }

  #noteEngine(engine: EngineFacts): number {
    const known = this.#engines.findIndex((one) => isDeepStrictEqual(one, engine));
    return known >= 0 ? known : this.#engines.push(engine) - 1;
  }

  /** The rows that are not in an earlier segment. */
  #cutExperts({ routedExperts, tokenIds }: Sampled): RoutedExperts | undefined {
    if (!routedExperts) return undefined;
    const { from, shape, ids } = routedExperts;
    const perToken = shape.reduce((product, size) => product * size, 1);
    const tokens = this.#length + tokenIds.length - 1 - from;
    if (ids.length !== tokens * perToken) throw refuse(`${ids.length} routed experts for ${tokens} tokens with ${perToken} each`);
    if (from > this.#routed) throw refuse(`routed experts from token ${from} on, where those from ${this.#routed} on are missing`);
    return { from: this.#routed, shape, ids: from === this.#routed ? ids : ids.slice((this.#routed - from) * perToken) };
  }

  /** The message of the last segment that has one is repeated, with more text, by a later segment. */
  #dropMessages(): void {
    const at = this.#segments.findLastIndex(({ messages }) => messages.length > 0);
    const last = this.#segments[at];
    if (!last || at < this.#branchStart) return;
    this.#thoughts -= countThoughts(last);
    this.#segments[at] = { ...last, messages: [] };
  }

  #requirePrompt(): void {
    if (this.#segments.length === 0) throw refuse('a first segment that is not a prompt');
  }

  /** Checks all ids before it writes the first one, so that a refusal leaves the ledger unchanged. */
  #join(ids: ArrayLike<number>): Int32Array {
    const tokenIds = toTokenIds(ids);
    this.#reserve(tokenIds.length * bytesPerId);
    let at = this.#jsonLength;
    for (const id of tokenIds) {
      if (at > 0) this.#json[at++] = 0x2c;
      at = writeDecimal(this.#json, at, id);
    }
    this.#jsonLength = at;
    this.#length += tokenIds.length;
    return tokenIds;
  }

  #reserve(bytes: number): void {
    const wanted = this.#jsonLength + bytes;
    if (wanted <= this.#json.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(wanted, 2 * this.#json.length));
    this.#json.copy(grown, 0, 0, this.#jsonLength);
    this.#json = grown;
  }
}

/** The messages whose reasoning the policy sees. A template may leave out that of earlier turns. */
function countThoughts({ kind, text, messages }: Pick<Segment, 'kind' | 'text'> & Pick<Rendered, 'messages'>): number {
  const isWritten = (reasoning: string) => kind !== 'prompt' || text.includes(reasoning.trim());
  return messages.filter(({ reasoning }) => reasoning !== undefined && isWritten(reasoning)).length;
}
