// The smallest image that Apptainer can start: folders to mount on, and links to the machine's own /usr, which the caller binds.

import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';

export async function makeTrialImage(image: string): Promise<void> {
  for (const name of ['dev', 'etc', 'proc', 'tmp', 'usr']) await mkdir(join(image, name), { recursive: true });
  for (const name of ['bin', 'lib', 'lib64']) await symlink(`usr/${name}`, join(image, name));
}
