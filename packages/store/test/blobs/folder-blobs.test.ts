// Blobs in a folder fulfil the contract of blob stores.

import { join } from 'node:path';
import { defineBlobSuite, makeTempFolder } from '@millrace/testkit';
import { openFolderBlobs } from '../../src/blobs/folder-blobs.ts';

defineBlobSuite('blobs in a folder', async () => {
  const folder = await makeTempFolder('millrace-blobs');
  const open = () => openFolderBlobs(join(folder.path, 'blobs'));
  return { blobs: open(), another: open, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
});
