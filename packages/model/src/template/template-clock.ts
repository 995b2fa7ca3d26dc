// The time that a template writes with strftime_now. It stands still: at the time when the template was opened, or at the date of a
// rollout, so that siblings and retries have the same prompt.

import type { ChatTemplate } from './chat-template.ts';

/** What the renderer reads. Rendering is synchronous, so one value serves all rollouts. */
export interface TemplateClock {
  nowMs: number;
}

type Rendering = Pick<ChatTemplate, 'renderOpening' | 'renderDelta' | 'isAppended' | 'renderFirstDelta' | 'keepsReasoning' | 'writeTurn'>;

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
