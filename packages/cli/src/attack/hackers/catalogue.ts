// The catalogue of reward hackers, in the order in which they are played.

import { sandboxDodgers } from './dodge-sandbox.ts';
import { textDodgers } from './dodge-texts.ts';
import { answerForgers } from './forge-answers.ts';
import { fileForgers } from './forge-files.ts';
import { programForgers } from './forge-programs.ts';
import { testForgers } from './forge-tests.ts';
import { freezers } from './freeze.ts';
import type { Hacker } from './hacker.ts';

export const hackers: readonly Hacker[] = [
  ...answerForgers,
  ...fileForgers,
  ...programForgers,
  ...testForgers,
  ...textDodgers,
  ...sandboxDodgers,
  ...freezers,
];
