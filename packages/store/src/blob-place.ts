// Where trajectories are kept: `store` (in the rows), `folder:/path`, or `s3://bucket/prefix?endpoint=URL&region=NAME`.

import { isAbsolute } from 'node:path';

export interface S3Place {
  readonly bucket: string;
  /** Before every key; without slashes at its ends. */
  readonly prefix: string;
  readonly endpoint: string;
  readonly region: string;
}

type BlobPlace = { readonly kind: 'store' } | { readonly kind: 'folder'; readonly path: string } | ({ readonly kind: 's3' } & S3Place);

const bucketPattern = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/** Throws an Error that says what is wrong. */
export function parseBlobPlace(text: string): BlobPlace {
  if (text === 'store') return { kind: 'store' };
  if (text.startsWith('folder:')) {
    const path = text.slice('folder:'.length);
    if (!isAbsolute(path)) throw new Error(`${text} needs an absolute path, such as folder:/data/blobs`);
    return { kind: 'folder', path };
  }
  if (!text.startsWith('s3://') || !URL.canParse(text)) throw new Error(`${text} is not store, folder:/path or s3://bucket/prefix`);
  const { host: bucket, pathname, searchParams } = new URL(text);
  if (!bucketPattern.test(bucket)) throw new Error(`${text} does not name a bucket`);
  const unknown = [...searchParams.keys()].filter((name) => name !== 'endpoint' && name !== 'region');
  if (unknown.length > 0) throw new Error(`${text} has the unknown parameter ${unknown[0]}; it takes endpoint and region`);
  const region = searchParams.get('region') ?? 'us-east-1';
  const endpoint = searchParams.get('endpoint') ?? `https://s3.${region}.amazonaws.com`;
  if (!URL.canParse(endpoint)) throw new Error(`${text} needs an endpoint with its scheme, such as endpoint=http://minio:9000`);
  return { kind: 's3', bucket, prefix: pathname.replace(/^\/+|\/+$/g, ''), endpoint, region };
}
