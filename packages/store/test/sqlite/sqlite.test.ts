// The SQLite store fulfils the store contract.

import { defineStoreSuite } from '@millrace/testkit';
import { openSqliteBed } from './bed.ts';

defineStoreSuite('SQLite store', openSqliteBed);
