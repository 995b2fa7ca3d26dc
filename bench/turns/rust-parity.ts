// Our ids against those of Hugging Face's tokenizers in Rust, through their Python package. Needs a Python that has it:
// `MILLRACE_TOKENIZERS_PYTHON=venv/bin/python npm run bench -- tokenizer`.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { z } from 'zod';

const program = `
import json, os, sys, time
os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tokenizers
tokenizer = tokenizers.Tokenizer.from_file(sys.argv[1])
texts = json.load(sys.stdin)
started = time.process_time()
encodings = [tokenizer.encode_batch_fast([text], add_special_tokens=False)[0] for text in texts]
seconds = time.process_time() - started
ids = [encoding.ids for encoding in encodings]
json.dump({"version": tokenizers.__version__, "ms": seconds * 1000, "ids": ids}, sys.stdout)
`;

const reply = z.object({ version: z.string(), ms: z.number(), ids: z.array(z.array(z.int())) });
export type RustEncoding = z.infer<typeof reply>;

/** Undefined without a Python that has the package. One thread, and no offsets: what it costs to get ids only. */
export function encodeWithRust(folder: string, corpus: readonly string[]): RustEncoding | undefined {
  const python = process.env.MILLRACE_TOKENIZERS_PYTHON;
  if (python === undefined) return undefined;
  const input = JSON.stringify(corpus);
  const output = execFileSync(python, ['-c', program, join(folder, 'tokenizer.json')], { input, encoding: 'utf8', maxBuffer: 2 ** 30 });
  return reply.parse(JSON.parse(output));
}
