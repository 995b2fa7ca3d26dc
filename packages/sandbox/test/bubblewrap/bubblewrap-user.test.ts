// The bubblewrap driver for an ordinary user: runs bubblewrap.test.ts again as one.

import { join } from 'node:path';
import { test } from 'node:test';
import { runAsUser, skipAsUser } from '@millrace/testkit';
import { probeBubblewrap } from '../../src/bubblewrap/probe.ts';

const probe = await probeBubblewrap();
const skip = skipAsUser || (probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`);

test('every test of the bubblewrap driver passes for an ordinary user too', { skip }, () =>
  runAsUser(join(import.meta.dirname, 'bubblewrap.test.ts'), { least: 100 }),
);
