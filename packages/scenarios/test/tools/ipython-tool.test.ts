// What the model reads after a cell.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PythonResult } from '@millrace/sandbox';
import { renderPythonResult } from '../../src/tools/ipython-tool.ts';

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
  ['the output of a cell is shown alone, without its last newline', result({ output: '1\n2\n' }), '1\n2'],
  ['no output is shown as such', result({}), '[no output]'],
  ['an error is shown as its traceback', result({ end: 'error', output: 'ValueError: 1\n' }), 'ValueError: 1'],
  [
    'an interrupt is shown, and that the variables are kept',
    result({ end: 'timeout' }),
    '[not done after 5 s: interrupted; the variables are kept]',
  ],
  [
    'the loss of the variables is shown',
    result({ end: 'host-died', stateLost: true, output: 'x\n' }),
    'x\n[the Python process ended; its variables are lost, and the next cell starts a new process]',
  ],
  [
    'the data of an image stays out of the text',
    result({ output: '[image/png 1x1, 3 bytes]\n', images: [{ mimeType: 'image/png', data: Buffer.from('abc') }] }),
    '[image/png 1x1, 3 bytes]',
  ],
  [
    'a missing IPython is shown',
    result({ end: 'missing', output: 'no IPython' }),
    'no IPython\n[ipython is not available in this sandbox]',
  ],
];

for (const [claim, python, text] of rendered) test(claim, () => assert.equal(renderPythonResult(python, 5000), text));
