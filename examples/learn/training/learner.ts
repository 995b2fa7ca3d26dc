// The learning half of the trainer: groups of samples in, better weights out. It knows tokens, log-probabilities and rewards, but not
// where they come from.

import { setImmediate as turn } from 'node:timers/promises';
import { Adam } from '../model/adam.ts';
import { Tape } from '../model/matrix.ts';
import { logprobsAt, type Network, weightsOf } from '../model/network.ts';
import type { Random } from '../model/random.ts';
import { toAdvantages, toTokenTerm } from './dapo.ts';

/** One trajectory as numbers. */
export interface Sample {
  readonly tokenIds: Int32Array;
  /** Where in `tokenIds` the sampled ones are. */
  readonly places: readonly number[];
  /** The log-probability of each as it was sampled. */
  readonly recorded: readonly number[];
  readonly reward: number;
}

export interface LearnerOptions {
  readonly rate: number;
  /** Passes over each batch. */
  readonly epochs: number;
  /** Samples for each step of the optimiser. */
  readonly minibatch: number;
}

export interface Update {
  readonly loss: number;
  /** The share of tokens whose ratio was clipped. */
  readonly clipped: number;
}

export class Learner {
  readonly network: Network;
  readonly #options: LearnerOptions;
  readonly #random: Random;
  readonly #adam: Adam;

  constructor(network: Network, options: LearnerOptions & { readonly random: Random }) {
    this.network = network;
    this.#options = options;
    this.#random = options.random;
    this.#adam = new Adam(weightsOf(network), { rate: options.rate });
  }

  /** One training step on the groups of one batch, with a share of the rate. Yields between optimiser steps. */
  async update(groups: readonly (readonly Sample[])[], share = 1): Promise<Update> {
    const { epochs, minibatch } = this.#options;
    const scored = groups.flatMap((group) => {
      const advantages = toAdvantages(group.map(({ reward }) => reward));
      return group.map((sample, index) => ({ sample, advantage: advantages[index] ?? 0 }));
    });
    const total = { loss: 0, clipped: 0, tokens: 0 };
    for (let epoch = 0; epoch < epochs; epoch++) {
      const order = shuffle(scored, this.#random);
      for (let from = 0; from < order.length; from += minibatch) {
        this.#accumulate(order.slice(from, from + minibatch), total);
        this.#adam.step(share);
        await turn();
      }
    }
    return { loss: total.loss / total.tokens, clipped: total.clipped / total.tokens };
  }

  /** The loss is a mean over tokens, so an answer counts in proportion to its length. */
  #accumulate(part: readonly Scored[], total: { loss: number; clipped: number; tokens: number }): void {
    const tokens = part.reduce((sum, { sample }) => sum + sample.places.length, 0);
    for (const { sample, advantage } of part) {
      const tape = new Tape();
      const logprobs = logprobsAt(this.network, sample.tokenIds, { places: sample.places, tape });
      sample.recorded.forEach((recorded, i) => {
        const term = toTokenTerm({ logprob: logprobs.data[i] ?? 0, recorded, advantage });
        logprobs.grad[i] = term.slope / tokens;
        total.loss += term.loss;
        total.clipped += term.isClipped ? 1 : 0;
      });
      tape.back();
    }
    total.tokens += tokens;
  }
}

interface Scored {
  readonly sample: Sample;
  readonly advantage: number;
}

function shuffle<T>(items: readonly T[], random: Random): T[] {
  return items
    .map((item) => ({ item, key: random.next() }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item);
}
