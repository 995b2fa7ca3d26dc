// The tools of a task, checked against the configuration when the task is submitted: a name that does not exist is refused with its field.

import type { Schema } from '@millrace/protocol';
import { z } from 'zod';
import type { Scenario } from '../scenario.ts';
import type { OutsideConfig } from '../tools/outside/outside-config.ts';
import { findChoiceFault } from '../tools/outside/outside-tools.ts';
import { toolChoice } from '../tools/tool-names.ts';

/** The scenario, whose schema also refuses `tools` that this service does not have. */
export function withKnownTools<Task>(scenario: Scenario<Task>, config: OutsideConfig): Scenario<Task> {
  const { task } = scenario;
  const checked: Schema<Task> = {
    def: { innerType: task },
    safeParse: (value) => checkTools(task.safeParse(value), config),
    safeParseAsync: async (value) => checkTools(await task.safeParseAsync(value), config),
  };
  return { ...scenario, task: checked };
}

const withTools = z.looseObject({ tools: toolChoice });

function checkTools<Result extends Awaited<ReturnType<Schema['safeParseAsync']>>>(result: Result, config: OutsideConfig): Result {
  const { data } = withTools.safeParse(result.success ? result.data : undefined);
  const issues = (data?.tools ?? []).flatMap((choice, index) => {
    const message = findChoiceFault(choice, config);
    return message === undefined ? [] : [{ path: ['tools', index], message }];
  });
  return issues.length === 0 ? result : ({ success: false, error: { issues } } as unknown as Result);
}
