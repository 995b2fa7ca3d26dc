// What a scenario's `respond` says to the agent after a turn without a tool call, checked, limited in time and with its failures attributed.

import { definedOf, describeIssues, message, type SamplingInput } from '@millrace/protocol';
import { z } from 'zod';
import { callScenario } from './call-scenario.ts';
import type { Opening } from './scenario.ts';
import { toContext, withinTime } from './tool-time.ts';
import type { Respond, ScenarioReply } from './tools/agent-part.ts';

/** Checked when it is used, with that of the submission. */
const sampling = z.custom<SamplingInput>((value) => typeof value === 'object' && value !== null, 'must be an object').optional();
const messages = z.union([z.string().transform((content) => [{ role: 'user' as const, content }]), z.array(message).min(1)]);
const reply = z.union([
  messages.transform((all) => ({ messages: all })),
  z.object({ finish: z.string() }),
  z.strictObject({ messages, sampling }),
  z.strictObject({ append: z.string().min(1), sampling }),
]);

/** Throws `run-failed` if the scenario takes longer than a tool may: without its reply there is nothing to continue with. */
export function openRespond(scenario: string, respond: NonNullable<Opening['respond']>): Respond {
  const what = `scenario ${scenario}, respond`;
  return async (turn, { sandbox, timeoutMs, signal }) => {
    const call = { what, code: 'run-failed', hasAgentActed: true } as const;
    return await callScenario(call, () =>
      withinTime({ what, timeoutMs, sandbox, signal }, async (within) => {
        const parsed = reply.safeParse(await respond(turn, toContext(what, { timeoutMs, signal: within }, sandbox)));
        if (parsed.success) return definedOf(parsed.data) as ScenarioReply;
        throw new Error(
          `it must return a string, messages, { messages }, { append } or { finish }: ${describeIssues(parsed.error.issues)}`,
        );
      }),
    );
  };
}
