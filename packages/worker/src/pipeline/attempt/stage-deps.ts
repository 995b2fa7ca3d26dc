// What the stages of an attempt need.

import type { Clock } from '@millrace/base/clock';
import type { Pace } from '@millrace/base/pace';
import type { Conversation } from '@millrace/model';
import type { HarnessShelf, LayerCache, SandboxDriver } from '@millrace/sandbox';
import type { OutsideTools, Prompts, Scenarios } from '@millrace/scenarios';
import type { TurnReport } from '../../agent/agent-options.ts';
import type { GatewayHost } from '../../gateway/gateway-host.ts';
import type { PolicyGate } from '../../inference/policy-gate.ts';
import type { BackendPool } from '../../inference/pool/pool.ts';
import type { Continuing } from '../continue/continuation.ts';
import type { AttemptRecord } from './attempt-record.ts';
import type { ControlResults } from './control-results.ts';

export interface StageDeps {
  readonly scenarios: Scenarios;
  /** Its sandboxes hold the layers that they are based on. */
  readonly driver: SandboxDriver;
  readonly layers: LayerCache;
  readonly pool: BackendPool;
  readonly gate: PolicyGate;
  readonly conversation: Conversation;
  /** The model's name in trajectories: the name of its tokenizer's folder. */
  readonly model: string;
  readonly clock: Clock;
  readonly pace: Pace;
  /** What controls of verifiers showed. */
  readonly controls: ControlResults;
  /** The user's own prompts; the default ones if absent. */
  readonly prompts?: Prompts;
  /** Takes the requests of gateways; without it they fail. */
  readonly gateways?: GatewayHost;
  /** The harnesses of this machine; without it rollouts that name one fail. */
  readonly harnesses?: HarnessShelf;
  /** Tools of the configuration; none if absent. */
  readonly outside?: OutsideTools;
  /** Saves turns and continues after them; without it every attempt begins again. */
  readonly continuing?: Continuing;
  onTurn(record: AttemptRecord, report: TurnReport): void;
}
