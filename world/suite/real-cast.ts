// The backends of the fault test: a real vLLM and two fakes of the same model, which can be paused, stopped, killed and started again, and
// which hang and lie.

import { setTimeout as pause } from 'node:timers/promises';
import { FakeBackend, type Fault, makeRandom, openFakeTokens } from '@millrace/testkit';
import type { EngineProcess } from '../engines/engine-process.ts';
import { contextTokens, openVllm } from '../engines/vllm.ts';
import { modelFolder, modelName } from '../engines/world-cache.ts';
import { countSampled, makeRequest, openEngineBackend } from './ask.ts';

const lies: readonly Fault[] = ['garbage', 'misaligned', 'no-logprobs', 'bad-ids', 'too-many', 'wrong-prompt', 'logits', 'cut'];

type FakeName = 'hanging' | 'lying';

/** The backends: a real vLLM and two fakes of the same model, each on its own port. */
export class RealCast implements AsyncDisposable {
  readonly urls: ReadonlyMap<string, string>;
  readonly #random: () => number;
  readonly #fakes: Map<FakeName, FakeBackend>;
  #real: EngineProcess | undefined;

  private constructor(real: EngineProcess, fakes: Map<FakeName, FakeBackend>, seed: number) {
    this.#real = real;
    this.#fakes = fakes;
    this.#random = makeRandom(seed);
    this.urls = new Map([['real', real.url], ...[...fakes].map(([name, { url }]) => [name, url] as const)]);
  }

  static async open(seed: number): Promise<RealCast> {
    const fakes = new Map<FakeName, FakeBackend>();
    for (const name of ['hanging', 'lying'] as const) fakes.set(name, await openFake());
    return new RealCast(await openVllm({ scaleOut: true, devMode: true }), fakes, seed);
  }

  get real(): EngineProcess {
    if (!this.#real) throw new Error('vLLM is dead');
    return this.#real;
  }

  /** How long a call may be silent: several times what a few calls at once take on this machine now. */
  async measureStall(): Promise<number> {
    const backend = openEngineBackend(this.real, 'vllm');
    const call = () => backend.generate(makeRequest({ maxTokens: 4 }));
    await Promise.all([call(), call(), call(), call()]); // the first ones prepare the engine
    const begin = performance.now();
    await Promise.all([call(), call(), call(), call()]);
    return Math.round(Math.min(30_000, Math.max(4000, 4 * (performance.now() - begin))));
  }

  /** Until the real engine has sampled some tokens from now on, or the rollouts have ended; a dead one is not waited for. */
  async waitForTokens(ended: Promise<unknown>): Promise<void> {
    if (!this.#real) return;
    let hasEnded = false;
    const onEnd = () => {
      hasEnded = true;
    };
    ended.then(onEnd, onEnd);
    const before = await countSampled(this.real);
    while (!hasEnded && (await countSampled(this.real)) < before + 8) await pause(50);
  }

  async pauseReal(mode: 'keep' | 'abort', meanwhile: () => void): Promise<void> {
    await post(`${this.real.url}/pause?mode=${mode}`);
    meanwhile();
    await pause(1500);
    await post(`${this.real.url}/resume`);
  }

  async stopReal(ms: number): Promise<void> {
    for (const signal of ['SIGSTOP', 'SIGCONT'] as const) {
      this.real.signal(signal);
      this.real.signalChildren(signal);
      if (signal === 'SIGSTOP') await pause(ms);
    }
  }

  async killReal(): Promise<void> {
    await this.real[Symbol.asyncDispose]();
    this.#real = undefined;
  }

  async restartReal(): Promise<void> {
    this.#real = await openVllm({ scaleOut: true, devMode: true, port: this.#portOf('real') });
  }

  fault(name: FakeName, fault: Fault | undefined): void {
    this.#fakes.get(name)?.setFaults(fault && (() => fault));
  }

  /** Two of three replies are lies, chosen by the seed. */
  lie(name: FakeName): void {
    this.#fakes.get(name)?.setFaults(() => (this.#random() < 2 / 3 ? lies[Math.floor(this.#random() * lies.length)] : undefined));
  }

  async kill(name: FakeName): Promise<void> {
    await this.#fakes.get(name)?.[Symbol.asyncDispose]();
  }

  async revive(name: FakeName): Promise<void> {
    this.#fakes.set(name, await openFake(this.#portOf(name)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const backend of [this.#real, ...this.#fakes.values()]) await backend?.[Symbol.asyncDispose]();
  }

  #portOf(name: string): number {
    return Number(new URL(this.urls.get(name) ?? '').port);
  }
}

async function openFake(port = 0): Promise<FakeBackend> {
  const tokens = await openFakeTokens(modelFolder());
  const policy = ({ promptIds: { length } }: { readonly promptIds: Int32Array }) => ({ text: `A fake has read ${length} tokens.` });
  const fake = new FakeBackend({ policy, port, model: modelName, maxModelLen: contextTokens, vocabularySize: 49_152, tokenMs: 40 }, tokens);
  await fake.listen();
  return fake;
}

async function post(address: string): Promise<void> {
  const answer = await fetch(address, { method: 'POST' });
  if (!answer.ok) throw new Error(`${address} answered ${answer.status}`);
}
