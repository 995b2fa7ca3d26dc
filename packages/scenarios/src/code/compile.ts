// Opens a sandbox in which a program is compiled. What ended the compiler from outside says nothing about the program.

import { definedOf, RolloutError } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import { toVerifierFault } from '../verifier/verifier-fault.ts';
import { type LanguageName, languages } from './languages.ts';

/** The compiler refused the program, or did not end in time. */
export class CompileError extends Error {}

interface CompileOptions {
  readonly language: LanguageName;
  readonly source: string;
  openSandbox(): Promise<Sandbox>;
  readonly signal: AbortSignal | undefined;
}

/** Of the compiler's own time. */
const compileMs = 30_000;
/** How often the compiler is started at most, if something ended it. */
const tries = 3;
export const compileSecondsMost = (tries * compileMs) / 1000;

/** A compiler that says this was ended, or the machine had no room for it. */
const wasEnded =
  /\bkilled\b|signal terminated|internal compiler error|memory exhausted|cannot allocate memory|no space left|temporarily unavailable/i;

const wasKilled = /\bkilled\b|signal terminated/i;

/** A language without a compiler needs only the sandbox. */
export async function openCompiled({ language, source, openSandbox, signal }: CompileOptions): Promise<Sandbox> {
  const { file, compile } = languages[language];
  const within = { timeoutMs: compileMs, ...definedOf({ signal }) };
  for (let number = 1; ; number += 1) {
    const sandbox = await openSandbox();
    await sandbox.writeFile(`/workspace/${file}`, source, definedOf({ signal }));
    if (!compile) return sandbox;
    const [compiler = ''] = compile;
    const found = await sandbox.exec(['/bin/sh', '-c', 'command -v "$0"', compiler], within);
    if (found.exitCode !== 0) throw toVerifierFault(`there is no ${compiler} in the sandbox: add it to the image`);
    const { exitCode, timedOut, stderr } = await sandbox.exec(compile, { cwd: '/workspace', judgesKills: true, ...within });
    if (exitCode === 0) return sandbox;
    const said = stderr.subarray(0, 2000).toString('utf8');
    const { ownOomKills, foreignOomKills } = sandbox.readUse();
    const isOwn = timedOut || ownOomKills > 0 || (exitCode !== undefined && !wasEnded.test(said));
    if (!isOwn && number < tries) continue;
    if (foreignOomKills > 0) throw new RolloutError('evaluate-disturbed', 'this machine ran out of memory during the compilation');
    // No program of the agent runs yet, and no text can send a signal.
    if (!isOwn && (exitCode === undefined || wasKilled.test(said))) throw new RolloutError('evaluate-disturbed', 'the compiler was killed');
    throw new CompileError(timedOut ? 'the compiler timed out' : said);
  }
}
