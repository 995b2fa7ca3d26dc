// A tool behind HTTP: the arguments of the call go to an address of the configuration, and the reply is what the model reads.

import { systemClock } from '@millrace/base/clock';
import { Deadline } from '@millrace/base/deadline';
import { describeIssues, messageOf } from '@millrace/protocol';
import { cutText } from '../cut-text.ts';
import { fromJsonSchema } from '../json-schema.ts';
import type { Tool, ToolContext } from '../tool.ts';
import { BrokenReply, type Endpoint, type EndpointReply } from './endpoint.ts';
import type { HttpToolConfig } from './outside-config.ts';
import { readReply } from './read-reply.ts';

type CallArguments = Readonly<Record<string, unknown>>;

export function openHttpTool(endpoint: Endpoint, config: HttpToolConfig): Tool {
  const { description, method } = config;
  const { name } = endpoint;
  const parameters = fromJsonSchema(config.parameters);
  const run = async (args: CallArguments, { timeoutMs, signal }: ToolContext): Promise<string> => {
    const parsed = parameters.safeParse(args);
    if (!parsed.success) return `${name}: ${describeIssues(parsed.error.issues)}`;
    const limitMs = Math.min(timeoutMs, endpoint.timeoutMs);
    using deadline = new Deadline(`the tool ${name}`, limitMs, systemClock);
    try {
      const reply = await endpoint.fetch({ ...toRequest(method, args), signal: AbortSignal.any([signal, deadline.signal]) });
      return await describeReply(name, reply);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof BrokenReply) return `[${name} failed: ${error.message}]`;
      if (error === deadline.signal.reason || isBodyError(error))
        return renderLate(name, { limitMs, isLate: deadline.signal.aborted, error });
      throw error;
    }
  };
  return {
    spec: { name, description, parameters: config.parameters },
    run: async (args, context) => ({ kind: 'text', text: cutText(endpoint.hideSecrets(await run(args, context))) }),
  };
}

/** The connection broke while the reply was read. */
function isBodyError(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof DOMException && error.name === 'AbortError');
}

function renderLate(name: string, { limitMs, isLate, error }: { limitMs: number; isLate: boolean; error: unknown }): string {
  return isLate ? `[${name} did not answer within ${limitMs / 1000} s and was cancelled]` : `[${name} failed: ${messageOf(error)}]`;
}

function toRequest(method: HttpToolConfig['method'], args: CallArguments) {
  if (method !== 'GET' && method !== 'DELETE')
    return { method, headers: { 'content-type': 'application/json', accept: '*/*' }, body: JSON.stringify(args) };
  const query = Object.entries(args).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]);
  return { method, headers: { accept: '*/*' }, query: Object.fromEntries(query) };
}

async function describeReply(name: string, reply: EndpointReply): Promise<string> {
  const type = reply.headers.get('content-type')?.split(';')[0]?.trim() ?? '';
  const { text, totalBytes } = await readReply(reply);
  const shown = isText(type) ? text.replace(/\n$/, '') : `[${type}, ${totalBytes} bytes, which cannot be shown]`;
  if (reply.ok) return shown === '' ? '[no output]' : shown;
  const why = reply.status >= 300 && reply.status < 400 ? ': redirects are not followed' : '';
  return [`[${name} failed with status ${reply.status}${why}]`, shown].filter((line) => line !== '').join('\n');
}

const isText = (type: string): boolean =>
  type === '' || /^text\/|[/+](?:json|xml|yaml|x-ndjson|javascript|x-www-form-urlencoded)$/i.test(type);
