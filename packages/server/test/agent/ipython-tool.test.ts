// Claims about what the model reads after a cell.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renderPythonResult } from '../../src/agent/ipython-tool.ts';
import type { PythonResult } from '../../src/sandbox/sandbox.ts';

const result = (fields: Partial<PythonResult>): PythonResult => ({
  end: 'ok',
  output: '',
  images: [],
  totalBytes: 0,
  cutBytes: 0,
  stateLost: false,
  ms: 1,
  ...fields,
});

const rendered: [string, PythonResult, string][] = [
  ['plain output stands alone, without its last newline', result({ output: '1\n2\n' }), '1\n2'],
  ['silence is said', result({}), '[no output]'],
  ['an error is its traceback', result({ end: 'error', output: 'ValueError: 1\n' }), 'ValueError: 1'],
  [
    'an interrupt is said, and that nothing is lost',
    result({ end: 'timeout' }),
    '[not done after 5 s: interrupted; the variables are kept]',
  ],
  [
    'a loss is said',
    result({ end: 'host-died', stateLost: true, output: 'x\n' }),
    'x\n[the Python process ended; its variables are gone, and the next cell starts a new one]',
  ],
  [
    'the data of an image stays out of the text',
    result({ output: '[image/png 1x1, 3 bytes]\n', images: [{ mimeType: 'image/png', data: Buffer.from('abc') }] }),
    '[image/png 1x1, 3 bytes]',
  ],
  ['what is missing is said', result({ end: 'missing', output: 'no IPython' }), 'no IPython\n[ipython cannot be used on this machine]'],
];

for (const [claim, python, text] of rendered) test(claim, () => assert.equal(renderPythonResult(python, 5000), text));
