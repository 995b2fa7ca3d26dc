// Compiles the rules for system calls to a program for the kernel's filter, in the form that `bwrap --seccomp` reads: an array of
// `struct sock_filter` (code, two relative jumps, operand).

import { type FilterArch, findNumber, newestCall } from './numbers.ts';
import type { ArgumentTest, CallRule } from './policy.ts';

const code = { load: 0x20, jump: 0x05, ifEqual: 0x15, ifGreater: 0x25, ifAnyBit: 0x45, end: 0x06 } as const;
const result = { allow: 0x7fff0000, error: 0x00050000, kill: 0x80000000 } as const;
const errors = { EPERM: 1, ENOSYS: 38, none: 0 } as const;
const auditArch = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;

/** Offsets in `struct seccomp_data`. Arguments have 64 bits, the low half first. */
const [numberAt, archAt, argumentsAt] = [0, 4, 16];

interface Instruction {
  readonly code: number;
  readonly operand: number;
  /** How many instructions to skip if the test holds, and if not. */
  readonly jumps?: readonly [number, number];
}

const load = (offset: number): Instruction => ({ code: code.load, operand: offset });
const jump = (count: number): Instruction => ({ code: code.jump, operand: count });
const end = (operand: number): Instruction => ({ code: code.end, operand });
const skipUnless = (test: number, operand: number, count: number): Instruction => ({ code: test, operand, jumps: [0, count] });
const skipIf = (test: number, operand: number, count: number): Instruction => ({ code: test, operand, jumps: [count, 0] });

/** A program of another architecture (32-bit x86, x32) is killed: its calls have other numbers. Calls newer than the table do not exist. */
export function compileFilter(rules: readonly CallRule[], arch: FilterArch): Buffer {
  const program = [
    load(archAt),
    skipIf(code.ifEqual, auditArch[arch], 1),
    end(result.kill),
    load(numberAt),
    skipUnless(code.ifGreater, newestCall, 1),
    end(result.error | errors.ENOSYS),
    ...rules.flatMap((rule) => compileRule(rule, arch)),
    end(result.allow),
  ];
  return Buffer.concat(program.map(encode));
}

/** Starts and ends with the number of the call loaded. */
function compileRule({ name, error, when }: CallRule, arch: FilterArch): Instruction[] {
  const number = findNumber(name, arch);
  if (number === undefined) return [];
  const refuse = end(result.error | errors[error]);
  const body = [refuse];
  // From the last test to the first: each must know how far away the end is.
  for (const test of when.toReversed()) body.unshift(...compileTest(test, body.length));
  const reload = when.length === 0 ? [] : [load(numberAt)];
  return [skipUnless(code.ifEqual, number, body.length + reload.length), ...body, ...reload];
}

/** Continues after itself if the test holds, and otherwise `rest` instructions further. */
function compileTest(test: ArgumentTest, rest: number): Instruction[] {
  const low = argumentsAt + 8 * test.argument;
  const fails = jump(rest);
  switch (test.kind) {
    case 'has-bit':
      return [load(low), skipIf(code.ifAnyBit, test.bit, 1), fails];
    case 'one-of':
      return [load(low), ...test.values.map((value, index) => skipIf(code.ifEqual, value, test.values.length - index)), fails];
    case 'not-zero':
      return [load(low), skipUnless(code.ifEqual, 0, 1), fails];
    case 'not-null':
      return [load(low), skipUnless(code.ifEqual, 0, 3), load(low + 4), skipUnless(code.ifEqual, 0, 1), fails];
  }
}

function encode({ code, operand, jumps: [held, failed] = [0, 0] }: Instruction): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(held, 2);
  bytes.writeUInt8(failed, 3);
  bytes.writeUInt32LE(operand >>> 0, 4);
  return bytes;
}
