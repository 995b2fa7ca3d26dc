// Blobs in a bucket of S3, or of a server with its API. The credentials come from the environment, never from the configuration.

import { S3Client, S3Errors } from '@bradenmacdonald/s3-lite-client';
import { sleep } from '@millrace/base/clock';
import type { S3Place } from '../blob-place.ts';
import { type BlobStore, checkKey } from './blob-store.ts';

export interface S3Credentials {
  readonly accessKey: string;
  readonly secretKey: string;
  readonly sessionToken?: string;
}

/** A server that does not answer for this long counts as unreachable; the caller tries again. */
const callMs = 60_000;
const deletesAtOnce = 16;

export function openS3Blobs({ bucket, prefix, endpoint, region }: S3Place, credentials: S3Credentials): BlobStore {
  const client = new S3Client({ endPoint: endpoint, region, bucket, pathStyle: !isAmazon(endpoint), ...credentials });
  const toName = (key: string) => {
    checkKey(key);
    return prefix === '' ? key : `${prefix}/${key}`;
  };
  return {
    name: `s3://${bucket}/${prefix} at ${endpoint}`,
    async put(key, bytes) {
      await withinTime(client.putObject(toName(key), new Uint8Array(bytes)));
    },
    async get(key) {
      try {
        return await withinTime(client.getObject(toName(key)).then(async (reply) => Buffer.from(await reply.arrayBuffer())));
      } catch (error) {
        // A bucket that does not exist is a fault, not a missing blob.
        if (error instanceof S3Errors.ServerError && error.code === 'NoSuchKey') return undefined;
        throw error;
      }
    },
    async delete(keys) {
      for (let at = 0; at < keys.length; at += deletesAtOnce)
        await withinTime(Promise.all(keys.slice(at, at + deletesAtOnce).map((key) => client.deleteObject(toName(key)))));
    },
    async *list(start) {
      const skipped = prefix === '' ? 0 : prefix.length + 1;
      const from = prefix === '' ? start : `${prefix}/${start}`;
      for await (const { key, size, lastModified } of client.listObjects({ prefix: from }))
        yield { key: key.slice(skipped), bytes: size, changedAtMs: lastModified.getTime() };
    },
  };
}

/** Amazon's own buckets are part of the host name; other servers have them in the path. */
function isAmazon(endpoint: string): boolean {
  return new URL(endpoint).hostname.endsWith('.amazonaws.com');
}

async function withinTime<T>(call: Promise<T>): Promise<T> {
  const done = new AbortController();
  const late = sleep(callMs, { signal: done.signal }).then(() => {
    throw new Error(`the bucket did not answer within ${callMs / 1000} s`);
  });
  try {
    return await Promise.race([call, late]);
  } finally {
    late.catch(() => {}); // it is aborted, or the call lost the race and its error was thrown
    done.abort();
  }
}
