// The contract suite of sandboxes: what every driver promises, and for each thing an agent does, what the model sees.

import { after, before, describe } from 'node:test';
import type { Sandbox, SandboxDriver } from '@millrace/server';
import { type SuiteContext, timeoutMs } from './sandbox-suite-context.ts';
import { defineLife, definePrograms, defineWalls } from './sandbox-suite-machine.ts';
import { defineEnds, defineOutput, defineState, defineStopping } from './sandbox-suite-shell.ts';

export interface SandboxSuiteOptions {
  /** Who the agent is inside; bubblewrap's is 1000. */
  readonly uid?: number;
}

export function defineSandboxSuite(name: string, openDriver: () => Promise<SandboxDriver>, options: SandboxSuiteOptions = {}): void {
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
      uid: options.uid ?? 1000,
      run: (command, options = {}) => sandbox.runShell(command, { timeoutMs, ...options }),
    };
    describe('state', () => defineState(context));
    describe('output', () => defineOutput(context));
    describe('ends', () => defineEnds(context));
    describe('stopping', () => defineStopping(context));
    describe('programs and files', () => definePrograms(context));
    describe('walls', () => defineWalls(context));
    describe('life', () => defineLife(context));
  });
}
