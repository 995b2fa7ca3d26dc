// The time that a template writes with strftime_now. It stands still: at the time when the template was opened, or at the date of a
// rollout, so that siblings and retries have the same prompt.

import type { Message, ToolSpec } from '@millrace/protocol';
import type { TextPart } from '../tokenizer/added-tokens.ts';
import type { Past } from './template-pasts.ts';

/** What the renderer reads. Rendering is synchronous, so one value serves all rollouts. */
export interface TemplateClock {
  nowMs: number;
}

/** What a template writes. */
export interface Rendering {
  /** The whole conversation so far, up to and including the generation prompt. */
  renderOpening(messages: readonly Message[], tools: readonly ToolSpec[]): TextPart[];
  /**
   * What follows the end of this past's last turn: the new messages, then the generation prompt of the next turn. Without a past it must be
   * the same after every one.
   */
  renderDelta(newMessages: readonly Message[], past?: Past): TextPart[];
  /** Whether the template leaves the past as it is when these messages follow. If not, all of it must be rendered again. */
  isAppended(newMessages: readonly Message[], past: Past): boolean;
  /** What follows a first answer. */
  renderFirstDelta(newMessages: readonly Message[]): TextPart[];
  /**
   * Whether the template still writes the reasoning of the turn `last`, and of turns before it if `hasEarlier`, when these messages follow.
   * Also true if it cannot write that turn's calls: then the history cannot be rendered again.
   */
  keepsReasoning(last: Message, newMessages: readonly Message[], hasEarlier?: boolean): boolean;
  /** The text of this turn as the template would have the model write it, without its end. Throws if it refuses such a turn. */
  writeTurn(turn: Message, tools: readonly ToolSpec[]): string;
}

/** The functions of a template, each run at `nowMs`. */
export function renderAt(template: Rendering, clock: TemplateClock, nowMs: number): Rendering {
  const within = <T>(render: () => T): T => {
    const before = clock.nowMs;
    clock.nowMs = nowMs;
    try {
      return render();
    } finally {
      clock.nowMs = before;
    }
  };
  return {
    renderOpening: (messages, tools) => within(() => template.renderOpening(messages, tools)),
    renderDelta: (newMessages, past) => within(() => template.renderDelta(newMessages, past)),
    isAppended: (newMessages, past) => within(() => template.isAppended(newMessages, past)),
    renderFirstDelta: (newMessages) => within(() => template.renderFirstDelta(newMessages)),
    keepsReasoning: (...turns) => within(() => template.keepsReasoning(...turns)),
    writeTurn: (turn, tools) => within(() => template.writeTurn(turn, tools)),
  };
}
