// The Apptainer driver for an ordinary user: runs apptainer.test.ts again as one.

import { join } from 'node:path';
import { test } from 'node:test';
import { findApptainer } from '@millrace/server';
import { runAsUser, skipAsUser } from '@millrace/testkit';

const skip = skipAsUser || (findApptainer() === undefined ? 'neither apptainer nor singularity is in PATH' : false);

test('every test of the Apptainer driver passes for an ordinary user too', { skip }, () =>
  runAsUser(join(import.meta.dirname, 'apptainer.test.ts'), { least: 100 }),
);
