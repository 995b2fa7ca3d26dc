// A server with OpenAI's chat route whose answers a test writes.

import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

interface ChatMessage {
  readonly role: string;
  readonly content: string;
}

interface ChatRequest {
  readonly headers: IncomingHttpHeaders;
  readonly messages: readonly ChatMessage[];
}

export interface ChatServer extends AsyncDisposable {
  /** Up to and including /v1. */
  readonly url: string;
  readonly seen: readonly ChatRequest[];
  /** The text of the reply, or a status that refuses it. */
  answer: (messages: readonly ChatMessage[]) => string | number;
}

export async function openChatServer(): Promise<ChatServer> {
  const seen: ChatRequest[] = [];
  const server = createServer(async (request, response) => {
    const { messages } = (await json(request)) as ChatRequest;
    seen.push({ headers: request.headers, messages });
    const said = request.url === '/v1/chat/completions' ? chat.answer(messages) : 404;
    if (typeof said === 'number') response.writeHead(said).end();
    else response.end(JSON.stringify({ choices: [{ message: { role: 'assistant', content: said } }] }));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const chat: ChatServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    seen,
    answer: () => 500,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
  return chat;
}
