// Renders the rules for system calls as the JSON profile that `apptainer --security seccomp:FILE` reads.

import type { ArgumentTest, CallRule } from './policy.ts';

interface ProfileArgument {
  readonly index: number;
  readonly op: string;
  readonly value: number;
  readonly valueTwo?: number;
}

const traceSeccomp = 0x80;
const [setOptions, seize] = [0x4200, 0x4206];

/**
 * Apptainer has only one error, EPERM: also for calls that should do nothing, whose errors programs ignore. A call that must not exist is traced instead: without a tracer, the kernel replies that there is no
 * such call. A tracer could allow it, so no process may ask for these events. Programs of other architectures are killed.
 */
export function renderProfile(rules: readonly CallRule[]): object {
  const syscalls = rules.flatMap(({ name, error, when }) =>
    listArguments(when).map((args) => ({ names: [name], action: error === 'ENOSYS' ? 'SCMP_ACT_TRACE' : 'SCMP_ACT_ERRNO', args })),
  );
  const tracing = [setOptions, seize].map((request) => ({
    names: ['ptrace'],
    action: 'SCMP_ACT_ERRNO',
    args: [isEqual(0, request), { index: 3, op: 'SCMP_CMP_MASKED_EQ', value: traceSeccomp, valueTwo: traceSeccomp }],
  }));
  return { defaultAction: 'SCMP_ACT_ALLOW', syscalls: [...syscalls, ...tracing] };
}

/** One list for each value of a `one-of`: the rules of a call are alternatives, and the arguments of a rule must all match. */
function listArguments(tests: readonly ArgumentTest[]): ProfileArgument[][] {
  return tests.reduce<ProfileArgument[][]>(
    (lists, test) => lists.flatMap((list) => toAlternatives(test).map((argument) => [...list, argument])),
    [[]],
  );
}

function toAlternatives(test: ArgumentTest): ProfileArgument[] {
  switch (test.kind) {
    case 'has-bit':
      return [{ index: test.argument, op: 'SCMP_CMP_MASKED_EQ', value: test.bit, valueTwo: test.bit }];
    case 'one-of':
      return test.values.map((value) => isEqual(test.argument, value));
    case 'not-zero':
    case 'not-null':
      return [{ index: test.argument, op: 'SCMP_CMP_NE', value: 0 }];
  }
}

/** Compares the 32 bits that the kernel reads. */
function isEqual(index: number, value: number): ProfileArgument {
  return { index, op: 'SCMP_CMP_MASKED_EQ', value: 0xffffffff, valueTwo: value };
}
