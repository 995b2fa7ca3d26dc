// The control of the scenario's code that runs while the agent acts: `respond`, its tools and `compact`. If it breaks again on what this agent said,
// and not on neutral texts in a fresh rollout, the agent broke it.

import { raceSignal } from '@millrace/base/race';
import { definedOf, type Message, type RolloutError } from '@millrace/protocol';
import { compactScenario } from '@millrace/scenarios';
import type { AttemptRecord, Prepared } from './attempt-record.ts';
import { type FreshRollout, neutralAnswers, type Running, withFreshRollout } from './control.ts';
import type { StageDeps } from './stage-deps.ts';

type ToControl = Prepared & Running;

/** What broke on the last turn of the agent. Each is called twice: as the agent did, and as one that says nothing. */
interface Suspect {
  breaksAgain(): Promise<boolean>;
  works(fresh: FreshRollout, neutral: string): Promise<boolean>;
}

export async function isBrokenByAgent(seen: RolloutError, deps: StageDeps, record: AttemptRecord, prepared: ToControl): Promise<boolean> {
  const messages = record.sampler?.ledger.messages ?? [];
  const last = messages.findLast(({ role }) => role === 'assistant');
  if (last === undefined) return false;
  const suspect = findSuspect(seen, deps, record, { ...prepared, messages, last });
  if (suspect === undefined || !(await suspect.breaksAgain())) return false;
  for (const neutral of neutralAnswers) {
    let works = false;
    const isOver = await doesReturn(prepared.signal, () =>
      withFreshRollout(deps, record, prepared, async (fresh) => {
        works = await suspect.works(fresh, neutral);
      }),
    );
    if (!isOver || !works) return false;
  }
  return true;
}

/**
 * What the scenario's code ends with that is not its own verdict on the agent. The death of its process is not among them: all rollouts of the
 * process lose their state with it, so a call that fails again says nothing about the agent.
 */
const breaks: ReadonlySet<string> = new Set(['tool-failed', 'run-failed', 'evaluate-failed']);

type Acted = ToControl & { readonly messages: readonly Message[]; readonly last: Message };

function findSuspect(seen: RolloutError, deps: StageDeps, record: AttemptRecord, acted: Acted): Suspect | undefined {
  if (!breaks.has(seen.code)) return undefined;
  if (seen.message.includes(', compact: ')) return compactSuspect(record, acted);
  if (acted.last.tool_calls !== undefined) return toolSuspect(record, acted);
  return acted.opening.respond === undefined ? undefined : respondSuspect(deps, record, acted);
}

function respondSuspect(deps: StageDeps, record: AttemptRecord, { last, ...prepared }: Acted): Suspect {
  const respond = async ({ opening, sandbox, signal }: FreshRollout, text: string) => {
    await opening.respond?.({ text, number: 1 }, toolTime(record, signal, sandbox));
    return true;
  };
  const again = () => withFreshRollout(deps, record, prepared, async (fresh) => void (await respond(fresh, last.content)));
  return { breaksAgain: async () => !(await doesReturn(prepared.signal, again)), works: respond };
}

/** In the sandbox that the agent left, with the arguments that it gave. */
function toolSuspect(record: AttemptRecord, { opening, sandbox, last, signal }: Acted): Suspect {
  let name = '';
  return {
    async breaksAgain() {
      for (const call of last.tool_calls ?? []) {
        const tool = opening.tools.find(({ spec }) => spec.name === call.name);
        name = call.name;
        if (tool?.tryNeutral === undefined) continue;
        if (!(await doesReturn(signal, async () => void (await tool.run(call.arguments, toolTime(record, signal, sandbox)))))) return true;
      }
      return false;
    },
    works: async (fresh, neutral) => {
      const tool = fresh.opening.tools.find(({ spec }) => spec.name === name);
      return (await tool?.tryNeutral?.(neutral, toolTime(record, fresh.signal, fresh.sandbox))) ?? false;
    },
  };
}

function compactSuspect(record: AttemptRecord, { scenario, task, opening, sandbox, signal, messages }: Acted): Suspect {
  const { limits } = record.claimed.submission;
  const compact = async (given: readonly Message[], context: Pick<FreshRollout, 'scenario' | 'opening' | 'sandbox' | 'signal'>) => {
    const more = definedOf({ sandbox: context.sandbox, state: context.opening.state });
    await raceSignal(compactScenario(context.scenario, { task, limits, signal: context.signal, messages: given, ...more }), context.signal);
    return true;
  };
  const withText = (content: string) => messages.map((one): Message => (one.role === 'assistant' ? { role: 'assistant', content } : one));
  return {
    breaksAgain: async () =>
      !(await doesReturn(signal, async () => void (await compact(messages, { scenario, opening, sandbox, signal })))),
    works: (fresh, neutral) => compact(withText(neutral), fresh),
  };
}

function toolTime(record: AttemptRecord, signal: AbortSignal, sandbox: FreshRollout['sandbox']) {
  return { timeoutMs: record.claimed.submission.limits.tool_timeout_s * 1000, signal, ...definedOf({ sandbox }) };
}

async function doesReturn(signal: AbortSignal, work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}
