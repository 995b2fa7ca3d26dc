// The same requests on a real vLLM with a small KV cache and on the simulated engine. Some agents at a time take a turn, and the next ones follow when
// all of these have ended: so what a cache still has depends on its mechanism, and not on how fast the machine is.

import { makeRandom } from '../../../packages/testkit/src/models/random.ts';
import { SimEngine } from '../engine.ts';

/** Agents with growing contexts; a session that ends is followed by another one. */
interface ReplayScene {
  readonly agents: number;
  /** How many take a turn at the same time. */
  readonly together: number;
  readonly startTokens: number;
  readonly observedTokens: number;
  readonly outputTokens: number;
  readonly turns: number;
  readonly rounds: number;
}

/** The shape of both engines. One block of vLLM's is never used for a context. */
interface ReplayShape {
  readonly blockTokens: number;
  readonly blocks: number;
  readonly stepTokens: number;
  readonly maxRunning: number;
}

export const smallCache: ReplayShape = { blockTokens: 32, blocks: 256, stepTokens: 512, maxRunning: 16 };

const agentsAlike = { startTokens: 320, observedTokens: 96, outputTokens: 32, turns: 8, rounds: 150 };

/** `pressure`: the contexts of all agents together over what the cache holds. */
export function sceneAt(pressure: number, { together = 4, rounds = agentsAlike.rounds } = {}): ReplayScene {
  const { startTokens, observedTokens, outputTokens, turns } = agentsAlike;
  const mean = startTokens + ((turns - 1) / 2) * (observedTokens + outputTokens) + outputTokens;
  const agents = Math.round((pressure * smallCache.blocks * smallCache.blockTokens) / mean);
  return { ...agentsAlike, rounds, agents, together: Math.min(together, agents) };
}

interface ReplayTurn {
  readonly session: number;
  /** The first turn of a session has its opening, later ones what a tool returned. */
  readonly newTokens: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/** In each round other agents, drawn at random. The first sessions start at a random turn, so that contexts of all sizes are there. */
export function makeRounds(scene: ReplayScene, seed: number): readonly (readonly ReplayTurn[])[] {
  const { agents, together, startTokens, observedTokens, outputTokens, turns, rounds } = scene;
  const random = makeRandom(seed);
  const perTurn = observedTokens + outputTokens;
  let sessions = 0;
  const open = (turn = 0) => {
    sessions += 1;
    return { session: sessions, turn, tokens: 0, opening: startTokens + turn * perTurn };
  };
  const all = Array.from({ length: agents }, () => open(Math.floor(random() * turns)));
  return Array.from({ length: rounds }, () => {
    const order = all.map((_, index) => ({ index, key: random() })).sort((a, b) => a.key - b.key);
    return order.slice(0, together).map(({ index }) => {
      const agent = all[index] ?? open();
      const newTokens = agent.tokens === 0 ? agent.opening : observedTokens;
      const promptTokens = agent.tokens + newTokens;
      const turn = agent.turn + 1;
      all[index] = turn >= turns ? open() : { ...agent, turn, tokens: promptTokens + outputTokens };
      return { session: agent.session, newTokens, promptTokens, outputTokens };
    });
  });
}

interface ReplayResult {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly preemptions: number;
}

export function replaySimulated(rounds: readonly (readonly ReplayTurn[])[], shape: ReplayShape): ReplayResult {
  const cost = { step: 1, token: 0, pair: 0, read: 0, sample: 0 };
  const engine = new SimEngine({ ...shape, blocks: shape.blocks - 1, cost });
  let cachedTokens = 0;
  for (const turns of rounds) {
    for (const { session, promptTokens, outputTokens } of turns)
      engine.submit({
        promptTokens,
        outputTokens,
        blockKey: (index) => session * 2 ** 20 + index,
        onFirstToken: () => {},
        onEnd: (end) => {
          cachedTokens += end.cachedTokens;
        },
      });
    while (!engine.isIdle) {
      engine.begin();
      engine.finish(0);
    }
  }
  return { promptTokens: sumPrompts(rounds), cachedTokens, preemptions: engine.counts.preemptions };
}

/** Needs vLLM with `VLLM_SERVER_DEV_MODE=1`, whose cache is emptied first, and `--enable-prompt-tokens-details`. */
export async function replayReal(url: string, rounds: readonly (readonly ReplayTurn[])[]): Promise<ReplayResult> {
  await post(`${url}/reset_prefix_cache`, {});
  const random = makeRandom(rounds.length);
  const contexts = new Map<number, number[]>();
  const before = await readPreemptions(url);
  let cachedTokens = 0;
  for (const turns of rounds)
    await Promise.all(
      turns.map(async ({ session, newTokens, outputTokens }) => {
        // Token ids at random: the weights are too, and no two openings are alike.
        const prompt = [...(contexts.get(session) ?? []), ...Array.from({ length: newTokens }, () => 100 + Math.floor(random() * 40_000))];
        const length = { max_tokens: outputTokens, min_tokens: outputTokens, ignore_eos: true };
        const reply = (await post(`${url}/v1/completions`, { model: 'm', prompt, ...length, return_token_ids: true })) as Completion;
        const ids = reply.choices[0]?.token_ids ?? [];
        if (ids.length !== outputTokens) throw new Error(`vLLM sampled ${ids.length} tokens instead of ${outputTokens}`);
        contexts.set(session, [...prompt, ...ids]);
        cachedTokens += reply.usage.prompt_tokens_details?.cached_tokens ?? 0;
      }),
    );
  return { promptTokens: sumPrompts(rounds), cachedTokens, preemptions: (await readPreemptions(url)) - before };
}

interface Completion {
  readonly choices: readonly { readonly token_ids?: readonly number[] }[];
  readonly usage: { readonly prompt_tokens_details?: { readonly cached_tokens?: number } | null };
}

function sumPrompts(rounds: readonly (readonly ReplayTurn[])[]): number {
  return rounds.flat().reduce((sum, { promptTokens }) => sum + promptTokens, 0);
}

async function readPreemptions(url: string): Promise<number> {
  const lines = (await (await fetch(`${url}/metrics`)).text()).split('\n');
  return Number(
    lines
      .find((line) => line.startsWith('vllm:num_preemptions_total{'))
      ?.split(' ')
      .at(-1) ?? 0,
  );
}

async function post(url: string, body: unknown): Promise<unknown> {
  const reply = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`POST ${url} answered ${reply.status}: ${text.slice(0, 500)}`);
  return text === '' ? undefined : JSON.parse(text);
}
