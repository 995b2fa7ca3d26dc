// Apptainer for an ordinary user: runs its tests of the first tier again as one. Where this run is an ordinary user's, `npm test` was too.

import { resolve } from 'node:path';
import { test } from 'node:test';
import { runAsUser, skipAsUser } from '@millrace/testkit';

const files = {
  'the Apptainer driver': { file: 'apptainer/apptainer.test.ts', least: 100 },
  'builds from Dockerfiles': { file: 'images/dockerfile.test.ts', least: 9 },
};

for (const [what, { file, least }] of Object.entries(files)) {
  test(`every test of ${what} passes for an ordinary user too`, async (context) => {
    if (skipAsUser) return context.diagnostic(skipAsUser);
    await runAsUser(resolve('packages/sandbox/test', file), { least });
  });
}
