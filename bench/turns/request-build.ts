// The cost of adding a turn's tokens to the context and building the next request's body: appending to ids that are kept in
// serialized form, compared with writing the whole context as JSON again. No network and no model.

import { Ledger } from '@millrace/model';
import { sampling } from '@millrace/protocol';
import { makeRandom } from '@millrace/testkit';
import type { GenerateRequest } from '../../packages/engines/src/backend.ts';
import { generateRoute } from '../../packages/engines/src/vllm-wire.ts';
import { toBody } from '../../packages/engines/src/wire.ts';
import { type BenchReport, type BenchRow, percentile } from '../report/report.ts';

const sizes = [1_000, 16_000, 64_000];
const newTokens = 264;
const rollouts = 25;
const turnsEach = 10;
const warmUps = 5;

export async function runRequestBuildBench(): Promise<BenchReport> {
  const random = makeRandom(1);
  const draw = (length: number) => Int32Array.from({ length }, () => Math.floor(random() * 150_000));
  const rows: BenchRow[] = [];
  const notes: string[] = [];
  for (const size of sizes) {
    const [past, added] = [draw(size), draw(newTokens)];
    const rebuilt = measure(() => prepareRebuilt(past, added));
    const appended = measure(() => prepareAppended(past, added));
    const base = rows.length;
    rows.push({ what: `${size / 1000}k context, written as JSON again`, unit: 'µs', samples: rebuilt.us });
    rows.push({ what: `${size / 1000}k context, Millrace`, unit: 'µs', samples: appended.us, against: base });
    if (rebuilt.bytes !== appended.bytes) throw new Error(`the two bodies differ: ${rebuilt.bytes}, ${appended.bytes}`);
    notes.push(`${size / 1000}k: a body of ${appended.bytes.toLocaleString('en')} bytes, of which ${appended.written} are new.`);
  }
  const at = (size: number) => percentile(rows.find(({ what }) => what === `${size}k context, Millrace`)?.samples ?? [], 0.5);
  const claim = `64 times the context, less than 2 times the cost (${(at(64) / at(1)).toFixed(2)} times)`;
  return { title: 'Building a request', rows, targets: [{ claim, kept: at(64) < 2 * at(1) }], notes: [...notes, describe()] };
}

interface Built {
  readonly bytes: number;
  readonly written: number;
}

function measure(prepare: () => () => Built): { us: number[]; bytes: number; written: number } {
  const us: number[] = [];
  let built: Built = { bytes: 0, written: 0 };
  for (let i = 0; i < warmUps + rollouts; i++) {
    const build = prepare();
    for (let turn = 0; turn < turnsEach; turn++) {
      const startedAt = performance.now();
      built = build();
      if (i >= warmUps) us.push((performance.now() - startedAt) * 1000);
    }
  }
  return { us, ...built };
}

function prepareAppended(past: Int32Array, added: Int32Array): () => Built {
  const ledger = new Ledger();
  ledger.appendPrompt({ tokenIds: past, text: '', messages: [] });
  return () => {
    const before = ledger.promptJson.length;
    ledger.appendObservation({ tokenIds: added, text: '', messages: [] });
    const body = toBody(generateRoute, makeRequest(ledger.promptJson, ledger.length), 'model');
    const bytes = body.reduce((sum, { length }) => sum + length, 0);
    return { bytes, written: bytes - before };
  };
}

function prepareRebuilt(past: Int32Array, added: Int32Array): () => Built {
  const ids = Array.from(past);
  return () => {
    ids.push(...added);
    const promptJson = Buffer.from(JSON.stringify(ids).slice(1, -1));
    const body = Buffer.concat(toBody(generateRoute, makeRequest(promptJson, ids.length), 'model'));
    return { bytes: body.length, written: body.length };
  };
}

function makeRequest(promptJson: Buffer, promptTokens: number): GenerateRequest {
  const rest = { maxTokens: 4096, stopTokenIds: [151_645], sessionId: 's', requestId: 'r', signal: new AbortController().signal };
  return { promptJson, promptTokens, sampling: sampling.parse({}), ...rest };
}

function describe(): string {
  return `${rollouts} rollouts of ${turnsEach} turns; each turn adds ${newTokens} ids to the context and builds the body of vLLM's /inference/v1/generate.`;
}
