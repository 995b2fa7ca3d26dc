// Runs the judged programs of a check in a second sandbox, so that they cannot kill, stop, trace or starve the check, or change a program or
// a file that it uses. The check's shell writes requests, and this side writes the replies.

import { definedOf, maxBodyBytes, RolloutError } from '@millrace/protocol';
import { sleep, systemClock } from '../../base/clock.ts';
import type { ExecResult, Sandbox } from '../../sandbox/sandbox.ts';
import { runTar } from './unpack-folder.ts';

export interface JudgedOptions {
  /** The folder with the named pipe `requests`. */
  readonly folder: string;
  openSandbox(): Promise<Sandbox>;
  readonly timeoutMs: number;
  /** Ends the service; running programs end with their sandbox. */
  readonly signal: AbortSignal;
}

const workspace = '/workspace';
const outputBytes = 8 << 20;
/** The times of files are up to 10 ms older than the clock. */
const fileClockMs = 15;

/** Reads one line, and leaves the rest for the next reader. */
const readLine = 'IFS= read -r line < "$0" && printf %s "$line"';

/** Codes of a sandbox that the judged programs ended. Any other error is not theirs. */
const judgedFaults: ReadonlySet<string> = new Set(['sandbox-limit', 'sandbox-killed', 'sandbox-refused']);

export class JudgedPrograms {
  /** How many programs were started. */
  count = 0;
  readonly #check: Sandbox;
  readonly #options: JudgedOptions;
  #opening: Promise<Sandbox> | undefined;
  #copied: Promise<unknown> = Promise.resolve();
  #copiedAtMs: number | undefined;

  constructor(check: Sandbox, options: JudgedOptions) {
    this.#check = check;
    this.#options = options;
  }

  /** Serves requests until the signal aborts. Rejects if a sandbox failed through no fault of the judged programs. */
  async serve(): Promise<void> {
    const { folder, timeoutMs, signal } = this.#options;
    const failed = Promise.withResolvers<never>();
    failed.promise.catch(() => {}); // it may reject after the service has ended
    const read = async () => {
      for (;;) {
        const result = await this.#check.exec(['/bin/bash', '--norc', '-p', '-c', readLine, `${folder}/requests`], { timeoutMs, signal });
        const name = result.stdout.toString('latin1');
        if (result.exitCode !== 0 || !/^judged-\d+$/.test(name)) return; // the check has run out of something, and ends without a reply
        this.#reply(`${folder}/${name}`).catch(failed.reject);
      }
    };
    await Promise.race([read(), failed.promise]);
  }

  async #reply(path: string): Promise<void> {
    const { signal } = this.#options;
    this.count += 1;
    const result = await this.#run(path).catch((error) => {
      signal.throwIfAborted();
      if (!(error instanceof RolloutError) || !judgedFaults.has(error.code)) throw error;
      return { exitCode: 125, stdout: Buffer.alloc(0), stderr: Buffer.from(`judged: ${error.message}\n`) };
    });
    await this.#check.writeFile(`${path}.out`, result.stdout, { signal });
    await this.#check.writeFile(`${path}.err`, result.stderr, { signal });
    // Never 126 or more, so that a program that is missing or dies does not look like a broken check.
    const reply = `${Math.min(result.exitCode ?? 125, 125)}\n`;
    await this.#check.writeFile(`${path}.reply`, reply, { signal }).catch((error) => {
      if (error.code !== 'sandbox-refused') throw error; // the shell has read the reply and removed the pipe already
    });
  }

  async #run(path: string): Promise<Pick<ExecResult, 'exitCode' | 'stdout' | 'stderr'>> {
    const { timeoutMs, signal } = this.#options;
    const read = (file: string) => this.#check.readFile(file, { maxBytes: maxBodyBytes, signal });
    const [cwd = workspace, count = '', ...rest] = (await read(`${path}.request`)).toString('utf8').split('\0');
    const stdin = await read(`${path}.in`).catch((error) => {
      if (error instanceof RolloutError && error.code === 'not-found') return Buffer.alloc(0);
      throw error;
    });
    this.#opening ??= this.#options.openSandbox();
    const sandbox = await this.#opening;
    this.#copied = this.#copied.then(() => this.#copyFiles(sandbox));
    await this.#copied;
    const variables = rest.slice(Number(count), -1).map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]);
    const options = { cwd, env: Object.fromEntries(variables), stdin, timeoutMs, capBytes: outputBytes, signal };
    return sandbox.exec(rest.slice(0, Number(count)), options);
  }

  /** Copies what the check changed since the last copy. The first copy is everything. */
  async #copyFiles(sandbox: Sandbox): Promise<void> {
    const { signal } = this.#options;
    const sinceMs = this.#copiedAtMs;
    // What the check changes after this wait gets a later time than what it changed before; what is copied twice would undo a change of a judged program.
    const changesUntilMs = systemClock.now() + 2;
    await sleep(fileClockMs);
    const { archive, entries } = await this.#check.readFolder(workspace, definedOf({ maxBytes: maxBodyBytes, sinceMs, signal }));
    // Judged programs may have replaced the tar program of their sandbox: whether it worked is their matter.
    if (entries > 0) await runTar(sandbox, archive, { signal });
    this.#copiedAtMs = changesUntilMs;
  }
}
