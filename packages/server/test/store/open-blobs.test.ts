// What `store.blobs` may say.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openBlobs, parseBlobPlace } from '@millrace/store';
import { readConfig } from '../../src/config.ts';

test('a place is the store, a folder, or a bucket with its endpoint and region', () => {
  assert.deepEqual(parseBlobPlace('store'), { kind: 'store' });
  assert.deepEqual(parseBlobPlace('folder:/data/blobs'), { kind: 'folder', path: '/data/blobs' });
  const bucket = { kind: 's3', bucket: 'my-bucket', prefix: 'a/b', endpoint: 'http://127.0.0.1:9000', region: 'eu-west-1' };
  assert.deepEqual(parseBlobPlace('s3://my-bucket/a/b/?endpoint=http://127.0.0.1:9000&region=eu-west-1'), bucket);
  const amazon = { kind: 's3', bucket: 'my-bucket', prefix: '', endpoint: 'https://s3.us-east-1.amazonaws.com', region: 'us-east-1' };
  assert.deepEqual(parseBlobPlace('s3://my-bucket'), amazon);
});

test('a place that cannot be used is refused with the reason, by the field of the configuration', () => {
  const refused: [string, RegExp][] = [
    ['folder:blobs', /folder:blobs needs an absolute path/],
    ['/data/blobs', /is not store, folder:\/path or s3:/],
    ['s3://B/x', /does not name a bucket/],
    ['s3://my-bucket?endpoint=minio', /needs an endpoint with its scheme/],
    ['s3://my-bucket?key=secret', /unknown parameter key; it takes endpoint and region/],
  ];
  for (const [text, message] of refused) {
    assert.throws(() => parseBlobPlace(text), message);
    assert.throws(() => readConfig(undefined, { 'store.blobs': text }), /store\.blobs/);
  }
});

test('a bucket without credentials in the environment is refused', async () => {
  await assert.rejects(openBlobs('s3://my-bucket', {}), /set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/);
});
