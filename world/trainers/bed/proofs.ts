// What the tests of one trainer proved, for the table in docs/trainers.md. Each test names the capability that it proves; when all tests of
// the file have passed, the list is written to world/trainers/proofs/NAME.json. If that differs from the committed file, the run fails
// and says what to do, so the table cannot claim what no test proves.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { type Capability, proofsFolder, type TrainerProofs } from './proof-table.ts';
import type { TrainerSettings } from './settings.ts';

interface Prover {
  /** Defines a test whose title is the claim. A test may prove several capabilities. */
  prove(capability: Capability | readonly Capability[], claim: string, run: (context: TestContext) => Promise<void>): void;
  /** Called in a test with the settings that it saw arrive, or refused. */
  settle(settings: TrainerSettings): void;
}

export type ProofHead = Omit<TrainerProofs, 'proofs' | 'limits' | 'settings'> & { readonly limits?: readonly string[] };

/** Called once in a test file; `name` is that of its folder. */
export function openProofs(name: string, head: ProofHead): Prover {
  const proofs: TrainerProofs['proofs'] = [];
  const settings: Record<string, string> = {};
  let [defined, passed] = [0, 0];
  after(() => {
    if (passed === defined) saveProofs(name, { ...head, proofs, settings, limits: [...(head.limits ?? [])] });
  });
  return {
    prove(capability, claim, run) {
      defined += 1;
      test(claim, { timeout: 900_000 }, async (context) => {
        await run(context);
        passed += 1;
        proofs.push({ capabilities: [capability].flat(), claim });
      });
    },
    settle: (found) => void Object.assign(settings, found),
  };
}

/** Where proofs of another version go: they are not held against the committed ones. */
export const proofsVariable = 'MILLRACE_TRAINER_PROOFS';

function saveProofs(name: string, found: TrainerProofs): void {
  const elsewhere = process.env[proofsVariable];
  if (elsewhere !== undefined) {
    writeFileSync(elsewhere, JSON.stringify(found));
    return;
  }
  const path = join(proofsFolder, `${name}.json`);
  const text = `${JSON.stringify(found, undefined, 2)}\n`;
  const before = existsSync(path) ? readFileSync(path, 'utf8') : '';
  writeFileSync(path, text);
  assert.equal(text, before, `${path} is written; run node scripts/write-docs.ts, and commit both`);
}
