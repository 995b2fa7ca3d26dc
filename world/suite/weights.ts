// Other weights for the same model, and vLLM's own routes that load them: a trainer's step without a trainer.

import { closeSync, copyFileSync, mkdirSync, openSync, readdirSync, readSync, symlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import type { Engine } from '../engines/engine-process.ts';
import { modelFolder } from '../engines/world-cache.ts';

/** A copy of the model whose last norm is scaled: every logprob changes, and no shape does. */
export function writeScaledModel(folder: string, factor: number): string {
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(modelFolder()).filter((name) => name !== 'model.safetensors'))
    symlinkSync(join(modelFolder(), name), join(folder, name));
  const path = join(folder, 'model.safetensors');
  copyFileSync(join(modelFolder(), 'model.safetensors'), path);
  const file = openSync(path, 'r+');
  try {
    scaleTensor(file, 'model.norm.weight', factor);
  } finally {
    closeSync(file);
  }
  return folder;
}

/** Safetensors: eight bytes of length, a header in JSON, then the numbers. */
function scaleTensor(file: number, name: string, factor: number): void {
  const length = Number(readAt(file, 0, 8).readBigUInt64LE());
  const header: Record<string, { readonly data_offsets: readonly [number, number] }> = JSON.parse(readAt(file, 8, length).toString('utf8'));
  const [begin, end] = header[name]?.data_offsets ?? [0, 0];
  const at = 8 + length + begin;
  const bytes = readAt(file, at, end - begin);
  for (let i = 0; i < bytes.length; i += 4) bytes.writeFloatLE(bytes.readFloatLE(i) * factor, i);
  writeSync(file, bytes, 0, bytes.length, at);
}

function readAt(file: number, at: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  readSync(file, bytes, 0, length, at);
  return bytes;
}

/** As a trainer does it: new weights from a folder, then an empty prefix cache, which takes several tries while a request still holds blocks. */
export async function loadWeights({ url }: Pick<Engine, 'url'>, folder: string): Promise<void> {
  await post(`${url}/collective_rpc`, { method: 'reload_weights', kwargs: { weights_path: folder } });
  for (const deadline = performance.now() + 30_000; performance.now() < deadline; await pause(100)) {
    const { success } = z.object({ success: z.boolean() }).parse(await post(`${url}/reset_prefix_cache`, {}));
    if (success) return;
  }
  throw new Error('the prefix cache was not emptied in 30 s');
}

async function post(address: string, body: unknown): Promise<unknown> {
  const answer = await fetch(address, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${address} answered ${answer.status}: ${(await answer.text()).slice(0, 500)}`);
  return await answer.json();
}
