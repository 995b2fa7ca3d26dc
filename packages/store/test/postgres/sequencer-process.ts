// A process that numbers the log of the store at the address it is given, until it is killed. Says when it is open.

import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { openPostgresStore } from '../../src/postgres/postgres.ts';

if (import.meta.main) {
  await openPostgresStore({ address: process.argv[2] ?? '', clock: systemClock, log: silentLog });
  process.send?.('open');
  process.once('disconnect', () => process.exit());
}
