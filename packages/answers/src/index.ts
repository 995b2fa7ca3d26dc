// What other packages may use of the answers package, name by name.

export { isSameAnswer, toReal } from './compare-answers.ts';
export { findAnswer } from './find-answer.ts';
export { withPowers } from './read/normalise.ts';
export { hasSameDimension, parseUnit } from './read/units.ts';
