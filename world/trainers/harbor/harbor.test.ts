// Harbor, where there is a Python that it runs on; Debian 12 has none.

import { test } from 'node:test';
import { findNewerPython } from '../scene/newer-python.ts';

if (findNewerPython() !== undefined) await import('./harbor-claims.ts');
else test('Harbor needs Python 3.12 or 3.13, so its adapter is not tested on this machine', () => {});
