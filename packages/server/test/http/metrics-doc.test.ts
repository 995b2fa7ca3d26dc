// The table of metrics in the docs is the one that the code makes.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { renderMetrics } from '../../src/http/metrics/metrics-doc.ts';

test('the table of metrics in docs/traces.md is current', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../../docs/traces.md'), 'utf8');
  assert.ok(page.includes(renderMetrics()), 'write it again: node scripts/write-docs.ts');
});
