// Agents for measuring an engine under the pressure of long contexts: each has a long opening of its own, writes turns of a given length, and
// waits for a tool that only takes time. No weights are needed: the length of a turn is set by sampling.

import { appendFileSync } from 'node:fs';
import { defineScenario, z } from 'millrace/scenario';
import { makeRandom } from '../../../packages/testkit/src/models/random.ts';

// by its path: a node has the clone, and no packages

/** Words of one token each in most vocabularies. */
const words =
  'time year people way day man thing woman life child world school state family student group country problem hand part place case week company system program question work number night point home water room mother area money story fact month lot right study book eye job word business issue side kind head house service friend father power hour game line end member law car city name team minute idea body back parent face level office door health person art war history party result change morning reason research girl guy moment air teacher force education'.split(
    ' ',
  );

export const scenario = defineScenario({
  name: 'pressure',
  task: z.strictObject({
    seed: z.int(),
    start_tokens: z.int().positive(),
    observed_tokens: z.int().positive(),
    output_tokens: z.int().positive(),
    turns: z.int().positive(),
    /** The token that ends a turn. */
    end_token: z.int(),
    /** Seconds of a tool: a log-normal distribution. */
    tool: z.strictObject({ median_s: z.number(), sigma: z.number(), longest_s: z.number() }),
    /** A file that gets a line for each turn, and one when the next is asked for. */
    log: z.string(),
  }),

  init({ task }) {
    const random = makeRandom(task.seed);
    const write = (tokens: number) => Array.from({ length: tokens }, () => words[Math.floor(random() * words.length)]).join(' ');
    const nextToolS = () => {
      const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
      return Math.min(task.tool.longest_s, task.tool.median_s * Math.exp(task.tool.sigma * normal));
    };
    let askedAt = performance.now();
    return {
      messages: [{ role: 'user', content: `${task.seed}: ${write(task.start_tokens)}` }],
      tools: [],
      sampling: { min_tokens: task.output_tokens - 1, max_tokens: task.output_tokens + 20, logit_bias: { [task.end_token]: 100 } },
      async respond({ number }) {
        appendFileSync(task.log, `${JSON.stringify({ at: Date.now(), seed: task.seed, number, ms: performance.now() - askedAt })}\n`);
        if (number >= task.turns) return { finish: 'done' };
        await new Promise((resolve) => setTimeout(resolve, 1000 * nextToolS()));
        appendFileSync(task.log, `${JSON.stringify({ at: Date.now(), seed: task.seed, number, asks: true })}\n`);
        askedAt = performance.now();
        return write(task.observed_tokens);
      },
    };
  },

  evaluate: () => ({ reward: 1 }),
});
