// The SQLite store keeps the contract.

import { defineStoreSuite } from '@millrace/testkit';
import { openSqliteBed } from './bed.ts';

defineStoreSuite('SQLite store', openSqliteBed);
