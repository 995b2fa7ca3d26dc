// Every dialect fulfils the backend contract.

import { after } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { dialects } from '@millrace/protocol';
import { defineBackendSuite } from '@millrace/testkit';
import { Agent } from 'undici';
import { openBackend } from '../src/open-backend.ts';

const dispatcher = new Agent();
after(() => dispatcher.destroy());

// A chat-only server renders its own prompts: chat.test.ts has one with the service's template.
for (const dialect of dialects.filter((one) => one !== 'chat')) {
  defineBackendSuite(dialect, {
    dialect,
    open: (record, options) => openBackend(record, { dispatcher, log: silentLog, pace: new Pace(), ...options }),
  });
}
