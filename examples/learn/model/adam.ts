// Adam: updates the weights with the gradients of a backward pass, then clears the gradients.

import type { Matrix } from './matrix.ts';

export interface AdamOptions {
  readonly rate: number;
  readonly beta1?: number;
  readonly beta2?: number;
  /** Gradients are clipped to this norm, taken over all weights. */
  readonly maxNorm?: number;
}

export class Adam {
  readonly #weights: readonly Matrix[];
  readonly #options: AdamOptions;
  readonly #means: readonly Float64Array[];
  readonly #squares: readonly Float64Array[];
  #steps = 0;

  constructor(weights: readonly Matrix[], options: AdamOptions) {
    this.#weights = weights;
    this.#options = options;
    this.#means = weights.map(({ data }) => new Float64Array(data.length));
    this.#squares = weights.map(({ data }) => new Float64Array(data.length));
  }

  /** `share` scales the learning rate of this step. */
  step(share = 1): void {
    const { beta1 = 0.9, beta2 = 0.99, maxNorm = 1 } = this.#options;
    this.#steps += 1;
    const scale = Math.min(1, maxNorm / (this.#norm() + 1e-12));
    const rate = (share * this.#options.rate * Math.sqrt(1 - beta2 ** this.#steps)) / (1 - beta1 ** this.#steps);
    for (const [index, { data, grad }] of this.#weights.entries()) {
      const [means, squares] = [this.#means[index] ?? grad, this.#squares[index] ?? grad];
      for (let i = 0; i < data.length; i++) {
        const slope = scale * (grad[i] ?? 0);
        const mean = beta1 * (means[i] ?? 0) + (1 - beta1) * slope;
        const square = beta2 * (squares[i] ?? 0) + (1 - beta2) * slope * slope;
        means[i] = mean;
        squares[i] = square;
        data[i] = (data[i] ?? 0) - (rate * mean) / (Math.sqrt(square) + 1e-8);
      }
      grad.fill(0);
    }
  }

  #norm(): number {
    let sum = 0;
    for (const { grad } of this.#weights) for (const slope of grad) sum += slope * slope;
    return Math.sqrt(sum);
  }
}
