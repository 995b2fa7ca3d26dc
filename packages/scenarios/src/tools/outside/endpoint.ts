// One address that the operator allows tools to call: its headers, its retries, and who is to blame when it fails. A server that cannot be
// reached is a fault of the environment; what a server answers, however odd, is something that the agent may have caused.

import { systemClock } from '@millrace/base/clock';
import { retry } from '@millrace/base/retry';
import { messageOf, RolloutError } from '@millrace/protocol';
import { Agent, fetch } from 'undici';
import type { EndpointConfig } from './outside-config.ts';

interface EndpointRequest {
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Appended to the address. */
  readonly query?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** A global one, since the MCP SDK expects it. */
export type EndpointReply = Response;

const retryDelayMs = 300;
const maxConnectMs = 5000;
/** The server, or a proxy before it, cannot answer anyone now, or does not accept the operator's key. */
const unavailableStatuses: ReadonlySet<number> = new Set([401, 407, 429, 502, 503, 504]);
/** The connection was made, and broke before the reply was complete. */
const brokenCodes: ReadonlySet<string> = new Set([
  'UND_ERR_SOCKET',
  'ECONNRESET',
  'EPIPE',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);
const minSecretLength = 6;

/** The server was reached, and did not answer with HTTP. */
export class BrokenReply extends Error {}

export class Endpoint implements AsyncDisposable {
  readonly name: string;
  readonly #config: EndpointConfig;
  readonly #agent: Agent;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #secrets: readonly string[];

  /** Throws an Error that names the variable of a header that is not set. */
  constructor(name: string, config: EndpointConfig, env: Readonly<Record<string, string | undefined>>) {
    this.name = name;
    this.#config = config;
    const filled = Object.entries(config.headers).map(
      ([header, value]) => [header, fillVariables(`${name}, header ${header}`, value, env)] as const,
    );
    this.#headers = Object.fromEntries(filled.map(([header, { text }]) => [header, text]));
    this.#secrets = filled.flatMap(([, { text, values }]) => [text, ...values]).filter((text) => text.length >= minSecretLength);
    const timeout = Math.min(maxConnectMs, this.timeoutMs / (config.attempts + 1));
    this.#agent = new Agent({ connect: { timeout } });
  }

  get url(): string {
    return this.#config.url;
  }

  get timeoutMs(): number {
    return this.#config.timeoutSeconds * 1000;
  }

  /** The text without the values of the operator's headers, which a server may repeat. */
  hideSecrets(text: string): string {
    return this.#secrets.reduce((left, secret) => left.replaceAll(secret, '[hidden]'), text);
  }

  /**
   * A reply with any status, redirects among them: they are never followed. Throws `tool-unavailable` if the server could not be reached or
   * refused to work, a BrokenReply if it broke the connection every time, and the reason of the signal.
   */
  async fetch(request: EndpointRequest): Promise<EndpointReply> {
    const { attempts } = this.#config;
    const { signal } = request;
    let last: RolloutError | undefined;
    try {
      return await retry(
        async () => {
          last = undefined;
          const reply = await this.#fetchOnce(request);
          if (!(reply instanceof RolloutError)) return reply;
          last = reply;
          throw reply;
        },
        { attempts, delayMs: retryDelayMs, signal, clock: systemClock },
      );
    } catch (error) {
      // Out of time between two attempts: the server is what used it up.
      const fault = error instanceof RolloutError ? error : last;
      if (fault?.details?.reached === true) throw new BrokenReply(fault.message);
      throw fault ?? error;
    }
  }

  /** Returns what a retry may help against. */
  async #fetchOnce({ method, headers, body, query, signal }: EndpointRequest): Promise<EndpointReply | RolloutError> {
    const url = new URL(this.#config.url);
    for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value);
    const init = { method, headers: { ...headers, ...this.#headers }, redirect: 'manual', signal, dispatcher: this.#agent } as const;
    let reply: EndpointReply;
    try {
      reply = (await fetch(url, { ...init, ...(body === undefined ? {} : { body }) })) as unknown as EndpointReply;
    } catch (error) {
      signal.throwIfAborted();
      const { code, why } = causeOf(error);
      const message = this.hideSecrets(`the server of ${this.name} at ${url.origin} could not be reached: ${why}`);
      return new RolloutError('tool-unavailable', message, {
        cause: error,
        details: { reached: brokenCodes.has(code) || code.startsWith('HPE_') },
      });
    }
    const { status } = reply;
    if (!unavailableStatuses.has(status)) return reply;
    const text = this.hideSecrets((await reply.text().catch(() => '')).slice(0, 300));
    return new RolloutError('tool-unavailable', `the server of ${this.name} at ${url.origin} answered with status ${status}: ${text}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }
}

/** `${NAME}` is filled in from the environment. */
function fillVariables(what: string, value: string, env: Readonly<Record<string, string | undefined>>): { text: string; values: string[] } {
  const values: string[] = [];
  const text = value.replace(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (_, name: string) => {
    const found = env[name];
    if (found === undefined || found === '') throw new Error(`${what}: the environment variable ${name} is not set`);
    values.push(found);
    return found;
  });
  return { text, values };
}

/** undici wraps what happened to the connection. */
function causeOf(error: unknown): { readonly code: string; readonly why: string } {
  const cause: unknown = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const code: unknown = Reflect.get(Object(cause), 'code');
  const inner: unknown = cause instanceof AggregateError ? cause.errors[0] : cause;
  return { code: typeof code === 'string' ? code : '', why: messageOf(inner) };
}
