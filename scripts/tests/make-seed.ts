// Makes what the sandboxes of all tests share in the folder of its argument, once for one run of the tests. A separate process, because
// the test command watches over its own children.

import { openBubblewrapDriver, silentLog } from '@millrace/server';

const [runDir] = process.argv.slice(2);
if (runDir === undefined) throw new Error('usage: make-seed.ts FOLDER');
await openBubblewrapDriver({ runDir, log: silentLog });
process.exit(0);
