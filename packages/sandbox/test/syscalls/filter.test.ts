// The filter of system calls, run by a small interpreter of the kernel's filter programs, for both architectures.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { compileFilter } from '../../src/syscalls/bpf.ts';
import { callNumbers, type FilterArch, findNumber, newestCall } from '../../src/syscalls/numbers.ts';
import { type CallRule, listRules } from '../../src/syscalls/policy.ts';

const [allow, nothing, refuse, absent, kill] = [0x7fff0000, 0x00050000, 0x00050001, 0x00050026, 0x80000000];
const auditArch = { x64: 0xc000003e, arm64: 0xc00000b7 };
const strict = listRules({ namespaces: false, isMemoryBounded: false });

for (const arch of ['x64', 'arm64'] as const) {
  const numberOf = (name: keyof typeof callNumbers) => findNumber(name, arch) ?? assert.fail(`${name} has no number`);
  const judge = (name: keyof typeof callNumbers, args: readonly (number | bigint)[] = [], rules: readonly CallRule[] = strict) =>
    runFilter(compileFilter(rules, arch), { number: numberOf(name), arch, args });

  describe(`the filter for ${arch}`, () => {
    test('refuses every call of the policy, and allows all others', () => {
      const program = compileFilter(strict, arch);
      for (const { name, error, when } of strict) {
        if (when.length > 0 || findNumber(name, arch) === undefined) continue;
        assert.equal(judge(name), { EPERM: refuse, ENOSYS: absent, none: nothing }[error], name);
      }
      const refused = new Set(strict.filter(({ when }) => when.length === 0).map(({ name }) => findNumber(name, arch)));
      for (let number = 0; number <= newestCall; number += 1)
        if (!refused.has(number)) assert.equal(runFilter(program, { number, arch, args: [] }), allow, String(number));
    });

    test('an agent cannot write the dirty pages of the whole machine to its disks, nor wait for that', () => {
      assert.deepEqual([judge('sync'), judge('syncfs', [3])], [nothing, nothing]);
    });

    test('decides by arguments, of which it reads the bits that the kernel reads', () => {
      assert.deepEqual([judge('clone', [0x10000011]), judge('clone', [0x3d0f00]), judge('unshare', [0x10000000])], [refuse, allow, refuse]);
      assert.deepEqual(
        [1, 2, 10, 16, 40, 17, 38].map((family) => judge('socket', [family])),
        [allow, allow, allow, allow, refuse, refuse, refuse],
      );
      assert.deepEqual([judge('socket', [2n ** 32n + 40n]), judge('socket', [2n ** 32n + 1n])], [refuse, allow]);
      assert.deepEqual(
        [judge('ioctl', [0, 0x5412]), judge('ioctl', [0, 0x5401]), judge('ioctl', [0, 2n ** 32n + 0x5412n])],
        [refuse, allow, refuse],
      );
      for (const name of ['sched_setaffinity', 'sched_setattr', 'sched_setparam', 'sched_setscheduler'] as const)
        assert.deepEqual(
          [0, 1, 2n ** 32n + 1n, 2, 4000].map((tid) => judge(name, [tid])),
          [allow, refuse, refuse, allow, allow],
        );
      assert.deepEqual(
        [
          [0, 0],
          [0, 1],
          [0, 2],
          [1, 1],
          [1, 0],
          [0, 9],
          [2, 0],
          [2, 1000],
        ].map((args) => judge('setpriority', args)),
        [allow, refuse, allow, refuse, allow, allow, refuse, refuse],
      );
      assert.deepEqual(
        [
          [1, 0],
          [1, 1],
          [1, 2],
          [2, 1],
          [2, 0],
          [1, 9],
          [3, 0],
          [3, 1000],
        ].map((args) => judge('ioprio_set', args)),
        [allow, refuse, allow, refuse, allow, allow, refuse, refuse],
      );
      const limit = (pid: number, pointer: number | bigint) => judge('prlimit64', [pid, 7, pointer]);
      assert.deepEqual([limit(0, 1), limit(1, 0), limit(1, 1), limit(1, 2n ** 32n)], [allow, allow, refuse, refuse]);
    });

    test('has calls neither of another architecture nor newer than the table', () => {
      const program = compileFilter(strict, arch);
      assert.equal(runFilter(program, { number: 1, arch: arch === 'x64' ? 'arm64' : 'x64', args: [] }), kill);
      for (const number of [newestCall + 1, 0x40000000]) assert.equal(runFilter(program, { number, arch, args: [] }), absent);
    });

    test('allows user namespaces and memory of no process only where they are wanted', () => {
      const loose = listRules({ namespaces: true, isMemoryBounded: true });
      assert.deepEqual(
        [judge('clone', [0x10000011], loose), judge('clone3', [], loose), judge('mount', [], loose)],
        [allow, absent, refuse],
      );
      for (const name of ['memfd_create', 'shmget', 'msgget'] as const)
        assert.deepEqual([judge(name), judge(name, [], loose)], [refuse, allow]);
    });
  });
}

test('docs/sandbox.md lists every call that is refused', async () => {
  const docs = await readFile(join(import.meta.dirname, '../../../../docs/sandbox.md'), 'utf8');
  assert.deepEqual(
    Object.keys(callNumbers).filter((name) => !docs.includes(`\`${name}\``)),
    [],
  );
});

interface FilterInput {
  readonly number: number;
  readonly arch: FilterArch;
  readonly args: readonly (number | bigint)[];
}

function runFilter(program: Buffer, { number, arch, args }: FilterInput): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number, 0);
  data.writeUInt32LE(auditArch[arch], 4);
  for (const [index, value] of args.entries()) data.writeBigUInt64LE(BigInt(value), 16 + 8 * index);
  let loaded = 0;
  for (let at = 0; at < program.length; at += 8) {
    const [code, operand] = [program.readUInt16LE(at), program.readUInt32LE(at + 4)];
    const skip = (held: boolean) => program.readUInt8(at + (held ? 2 : 3)) * 8;
    if (code === 0x06) return operand;
    if (code === 0x20) loaded = data.readUInt32LE(operand);
    else if (code === 0x05) at += operand * 8;
    else if (code === 0x15) at += skip(loaded === operand);
    else if (code === 0x25) at += skip(loaded > operand);
    else if (code === 0x45) at += skip((loaded & operand) !== 0);
    else assert.fail(`unknown instruction ${code}`);
  }
  return assert.fail('the program does not end');
}
