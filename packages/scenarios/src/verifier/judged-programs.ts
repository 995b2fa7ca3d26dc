// Runs the judged programs of a check in a second sandbox, so that they cannot kill, stop, trace or starve the check, or change a program or
// a file that it uses. They get the agent's files, and of the check only what it names. The check writes requests, this side the replies.

import { maxBodyBytes, RolloutError } from '@millrace/protocol';
import type { ExecOptions, Sandbox } from '@millrace/sandbox';
import { type JudgedEnd, runJudgedTests } from './judged-tests.ts';
import { runTar } from './unpack-folder.ts';

interface JudgedOptions {
  /** The folder with the named pipe `requests`. */
  readonly folder: string;
  /** The agent's files, as an archive of /workspace. */
  readonly files: Buffer;
  openSandbox(): Promise<Sandbox>;
  readonly timeoutMs: number;
  /** Ends the service; running programs end with their sandbox. */
  readonly signal: AbortSignal;
}

const workspace = '/workspace';
const outputBytes = 8 << 20;

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

  async #run(path: string): Promise<JudgedEnd> {
    const { timeoutMs, signal } = this.#options;
    const read = (file: string) => this.#check.readFile(file, { maxBytes: maxBodyBytes, signal });
    const request = parseRequest((await read(`${path}.request`)).toString('utf8'));
    const stdin = await read(`${path}.in`).catch(orAbsent);
    this.#opening ??= this.#open();
    const sandbox = await this.#opening;
    for (const file of request.files) await this.#copy(file, sandbox);
    const options = {
      cwd: request.cwd,
      env: request.env,
      stdin: stdin ?? '',
      timeoutMs,
      capBytes: outputBytes,
      signal,
    } satisfies ExecOptions;
    return request.kind === 'tests' ? runJudgedTests(sandbox, request.argv, options) : sandbox.exec(request.argv, options);
  }

  async #open(): Promise<Sandbox> {
    const { files, openSandbox, signal } = this.#options;
    const sandbox = await openSandbox();
    const { exitCode, stderr } = await runTar(sandbox, files, { signal });
    if (exitCode !== 0)
      throw new RolloutError('policy-failed', `the agent's files could not be unpacked: ${stderr.toString('utf8').slice(-500)}`);
    return sandbox;
  }

  /** A file or a folder of the check, to the same path. Judged programs may have replaced the programs there: that is their matter. */
  async #copy(path: string, sandbox: Sandbox): Promise<void> {
    const limits = { maxBytes: maxBodyBytes, signal: this.#options.signal };
    const folder = await this.#check.readFolder(path, { ...limits, anyLink: true }).catch(orAbsent);
    if (folder) {
      await runTar(sandbox, folder.archive, { folder: path, signal: limits.signal });
      return;
    }
    const content = await this.#check.readFile(path, { ...limits, anyLink: true }).catch(orAbsent);
    if (content === undefined) throw new RolloutError('sandbox-refused', `--file: there is no ${path} in the sandbox of the check`);
    await sandbox.writeFile(path, content, { mode: 0o755, signal: limits.signal });
  }
}

interface JudgedRequest {
  readonly kind: string;
  readonly cwd: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly files: readonly string[];
}

/** Fields end with a null character; a list is its length and then its items. */
function parseRequest(text: string): JudgedRequest {
  const [kind = '', cwd = workspace, ...rest] = text.split('\0');
  let at = 0;
  const takeList = () => {
    const count = Number(rest[at]);
    at += 1 + count;
    return rest.slice(at - count, at);
  };
  const [argv, variables, files] = [takeList(), takeList(), takeList()];
  const env = Object.fromEntries(variables.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
  return { kind, cwd, argv, env, files };
}

function orAbsent(error: unknown): undefined {
  if (error instanceof RolloutError && error.code === 'not-found') return undefined;
  throw error;
}
