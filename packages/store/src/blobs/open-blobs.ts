// Opens the blob store that the configuration names.

import { definedOf } from '@millrace/protocol';
import { parseBlobPlace } from '../blob-place.ts';
import type { BlobStore } from './blob-store.ts';
import { openFolderBlobs } from './folder-blobs.ts';
import type { S3Credentials } from './s3-blobs.ts';

/** Undefined when the rows hold everything. Throws an Error if credentials are missing. */
export async function openBlobs(text: string, env: NodeJS.ProcessEnv): Promise<BlobStore | undefined> {
  const place = parseBlobPlace(text);
  switch (place.kind) {
    case 'store':
      return undefined;
    case 'folder':
      return openFolderBlobs(place.path);
    case 's3': {
      // Loaded only where it is used.
      const { openS3Blobs } = await import('./s3-blobs.ts');
      return openS3Blobs(place, readCredentials(env));
    }
  }
}

function readCredentials(env: NodeJS.ProcessEnv): S3Credentials {
  const { AWS_ACCESS_KEY_ID: accessKey, AWS_SECRET_ACCESS_KEY: secretKey, AWS_SESSION_TOKEN: sessionToken } = env;
  if (!accessKey || !secretKey) throw new Error('store.blobs names a bucket: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
  return { accessKey, secretKey, ...definedOf({ sessionToken: sessionToken || undefined }) };
}
