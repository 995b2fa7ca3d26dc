// The contract suite of sandboxes: what every driver promises, and what the model sees for each thing that an agent does.

import { after, before, describe } from 'node:test';
import type { Sandbox, SandboxDriver } from '@millrace/sandbox';
import { defineComposedAttacks } from './attacks/compose.ts';
import { defineAttacks } from './attacks/run-attacks.ts';
import { type SuiteContext, timeoutMs } from './context.ts';
import { type DriverCall, defineDescriptors } from './descriptors.ts';
import { defineDodges } from './dodges.ts';
import { defineHostile } from './hostile.ts';
import { defineLayers } from './layers.ts';
import { defineLife, definePrograms, defineWalls } from './machine.ts';
import { defineMemory } from './memory.ts';
import { defineNamespaces } from './namespaces.ts';
import { defineOutside } from './outside.ts';
import { defineHarnessMount } from './programs/harness-mount.ts';
import { defineLoopback } from './programs/loopback.ts';
import { defineOpenPrograms } from './programs/open-program.ts';
import { definePython } from './python.ts';
import { defineEnds, defineOutput, defineState, defineStopping } from './shell.ts';
import { defineSystemCalls } from './system-calls.ts';
import { defineTransfer } from './transfer.ts';
import { defineVerifier } from './verifier.ts';

interface SandboxSuiteOptions {
  /** The agent's user id inside; 1000 by default, as in bubblewrap. */
  readonly uid?: number;
  /** Whether the agent may change every file of its image; the changes end with its sandbox. */
  readonly isRootWritable?: boolean;
  /** The user of the agent's processes on this machine, if not the worker's own. */
  readonly hostUid?: number | undefined;
  readonly isPooled?: boolean;
  /** How another process opens this driver; without it, no test needs another process. */
  readonly call?: () => DriverCall;
}

export function defineSandboxSuite(name: string, openDriver: () => Promise<SandboxDriver>, options: SandboxSuiteOptions = {}): void {
  const { uid = 1000, isRootWritable = false, hostUid, isPooled = false, call } = options;
  describe(`sandbox: ${name}`, () => {
    let driver: SandboxDriver;
    let sandbox: Sandbox;
    before(async () => {
      driver = await openDriver();
      sandbox = await driver.open({ env: { GREETING: 'hello' } });
    });
    after(() => sandbox[Symbol.asyncDispose]());

    const context: SuiteContext = {
      sandbox: () => sandbox,
      driver: () => driver,
      uid,
      isRootWritable,
      hostUid,
      isPooled,
      run: (command, options = {}) => sandbox.runShell(command, { timeoutMs, ...options }),
    };
    describe('state', () => defineState(context));
    describe('output', () => defineOutput(context));
    describe('ends', () => defineEnds(context));
    describe('stopping', () => defineStopping(context));
    describe('programs and files', () => definePrograms(context));
    describe('programs that keep running', () => defineOpenPrograms(context));
    describe('loopback', () => defineLoopback(context));
    describe('python', () => definePython(context));
    describe('upload and download', () => defineTransfer(context));
    describe('walls', () => defineWalls(context));
    describe('life', () => defineLife(context));
    describe('layers', () => defineLayers(context));
    describe('hostile agents', () => defineHostile(context));
    describe('namespaces of agents', () => defineNamespaces(context));
    describe('memory of agents', () => defineMemory(context));
    describe('outside', () => defineOutside(context));
    describe('system calls of agents', () => defineSystemCalls(context));
    if (!isPooled) {
      // A sandbox from a reserve is started by the same driver, and has met all of these there.
      describe('attacks', () => defineAttacks(context));
      describe('composed attacks', () => defineComposedAttacks(context));
      describe('forged rewards', () => defineVerifier(context));
      describe('dodged zeros', () => defineDodges(context));
    }
    if (call) describe('harnesses', () => defineHarnessMount(context, call));
    if (call) describe('inherited descriptors', () => defineDescriptors(call));
  });
}
