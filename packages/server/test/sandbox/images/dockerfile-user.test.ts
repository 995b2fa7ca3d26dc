// Builds from Dockerfiles for an ordinary user: runs dockerfile.test.ts again as one.

import { join } from 'node:path';
import { test } from 'node:test';
import { findApptainer } from '@millrace/server';
import { runAsUser, skipAsUser } from '@millrace/testkit';

const skip = skipAsUser || (findApptainer() === undefined ? 'neither apptainer nor singularity is in PATH' : false);

test('every test of builds from Dockerfiles passes for an ordinary user too', { skip, timeout: 300_000 }, () =>
  runAsUser(join(import.meta.dirname, 'dockerfile.test.ts'), { least: 9 }),
);
