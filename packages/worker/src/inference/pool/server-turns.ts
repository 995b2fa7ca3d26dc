// Which servers answer at one address, asked one time after the other: behind a router, another may answer for another session, or for each
// request.

import { Agent } from 'undici';
import { type AskedServer, openAsk } from '../identity/ask-server.ts';
import { readInstance } from '../identity/instance.ts';
import { type ProbeOptions, within } from './probe.ts';

/** How long an answer may take. */
const answerMs = 3000;
/** How many sessions are asked. Two servers that share them equally hide from so many in one of 256 probes. */
const sessions = 8;
/** How often one session is asked. A router that chooses at random stays with a server for so long in one of 256. */
const turns = 8;

type TurnAsk = Omit<ProbeOptions, 'dispatcher'>;

export const sessionOf = (turn: number): string => `probe-${turn}`;

/** The starts of servers that answer, once for each of several sessions, each over its own connection. */
export async function readTurns(server: AskedServer, options: TurnAsk): Promise<string[]> {
  return await readEach(server, { ...options, sessions: Array.from({ length: sessions }, (_, turn) => sessionOf(turn)) });
}

/** Whether this start of a server, and no other one, answers a session. */
export async function isAloneIn(session: string, server: AskedServer, options: TurnAsk & { instance: string }): Promise<boolean> {
  const seen = await readEach(server, { ...options, sessions: Array.from({ length: turns }, () => session) });
  return seen.length === turns && seen.every((one) => one === options.instance);
}

/** A start of a server that is over does not answer again, so several servers answer. */
export function comesBack(seen: readonly string[]): boolean {
  return seen.some((one, at) => seen[at - 1] !== one && seen.indexOf(one) < at);
}

async function readEach(server: AskedServer, options: TurnAsk & { readonly sessions: readonly string[] }): Promise<string[]> {
  const seen: string[] = [];
  for (const session of options.sessions) {
    const dispatcher = new Agent();
    try {
      const read = (signal: AbortSignal) => readInstance(server, openAsk(server, { signal, dispatcher, session }));
      const instance = await within({ timeoutMs: answerMs, ...options }, read);
      if (instance !== undefined) seen.push(instance);
    } finally {
      await dispatcher.destroy();
    }
  }
  return seen;
}
