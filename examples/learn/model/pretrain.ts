// The base model: the policy before training. It has read random dialogues in which people look somewhere and then answer, often
// repeating the last word they saw. It knows the format, but not the task.

import { Adam } from './adam.ts';
import { Tape } from './matrix.ts';
import { logprobsAt, makeNetwork, type Network, weightsOf } from './network.ts';
import { makeRandom, type Random } from './random.ts';
import { animals, callClose, callOpen, idOf, marks, places, vocabularySize } from './vocabulary.ts';

const shape = { vocabulary: vocabularySize, positions: 192, width: 32, heads: 2, layers: 1 };
const reading = { batches: 250, texts: 8, rate: 0.01 };

/** The dialogues: how often someone looks (again) before answering, and how often a word repeats the last one seen. */
const habits = { look: 0.6, copy: 0.75, mostLooks: 4 };

export function makeBaseModel(seed: number): Network {
  const network = makeNetwork(shape, makeRandom('weights', seed));
  const random = makeRandom('talk', seed);
  const adam = new Adam(weightsOf(network), { rate: reading.rate });
  for (let batch = 0; batch < reading.batches; batch++) {
    const texts = Array.from({ length: reading.texts }, () => makeTalk(random));
    const tokens = texts.reduce((sum, { said }) => sum + said.length, 0);
    for (const { tokenIds, said } of texts) {
      const tape = new Tape();
      logprobsAt(network, tokenIds, { places: said, tape }).grad.fill(-1 / tokens);
      tape.back();
    }
    adam.step(1 - batch / reading.batches);
  }
  return network;
}

/** A text as the chat template would write it, and where in it the assistant speaks. */
function makeTalk(random: Random): { readonly tokenIds: readonly number[]; readonly said: readonly number[] } {
  const tokenIds: number[] = [];
  const said: number[] = [];
  const append = (...words: readonly string[]) => tokenIds.push(...words.map(idOf));
  const say = (...words: readonly string[]) => {
    for (const word of words) said.push(append(word) - 1);
  };
  let lastWord: string = random.pick(places);
  const choose = (words: readonly string[]) => (random.next() < habits.copy ? lastWord : random.pick(words));
  append(marks.user, 'Who ', 'is ', 'in ', 'the ', lastWord, '?', marks.end, marks.assistant);
  for (let looks = 0; looks < habits.mostLooks && random.next() < habits.look; looks++) {
    say(...callOpen, choose(places), callClose, marks.end);
    lastWord = random.pick([...places, ...animals]);
    append(marks.tool, lastWord, marks.end, marks.assistant);
  }
  say(choose(animals), marks.end);
  return { tokenIds, said };
}
