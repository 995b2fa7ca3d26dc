// Whether a store can be kept by this server, looked at when a process starts: a version that is too old, or a pooler that gives each
// transaction another connection, is refused with what was seen and what to do.

import { messageOf, RolloutError } from '@millrace/protocol';
import { poolerFault } from './faults.ts';
import type { Session } from './session.ts';

/** The oldest release that is supported, as docs/postgres.md says. */
const oldestRelease = 14;

interface ServerVersion {
  /** As `server_version_num`: 150004 is 15.4. */
  readonly number: number;
  readonly text: string;
}

/** `openOther` opens a second connection to the same address. */
export async function checkServer(session: Session, openOther: () => Promise<Session>): Promise<void> {
  const sql = "SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS text";
  const [version] = await session.script<ServerVersion>(sql);
  const fault = version && findVersionFault(version);
  if (fault !== undefined) throw new RolloutError('internal', fault);
  // A server announces its own process; a pooler announces a number of its own.
  const pid = await readPid(session);
  if (session.announcedPid === pid || (await keepsConnection(session, { pid, openOther }))) return;
  throw new RolloutError('internal', poolerFault);
}

export function findVersionFault({ number, text }: ServerVersion): string | undefined {
  if (number >= oldestRelease * 10_000) return undefined;
  return `the server is PostgreSQL ${text}, and Millrace needs PostgreSQL ${oldestRelease} or newer: upgrade the server, or name another one`;
}

/** Whether another client's transaction leaves this session its connection. */
async function keepsConnection(
  session: Session,
  { pid, openOther }: { readonly pid: number | undefined; readonly openOther: () => Promise<Session> },
): Promise<boolean> {
  const other = await openOther();
  try {
    await other.script('BEGIN');
    // A pool of one connection would let the session wait, so it is asked last.
    return (await readPid(other)) !== pid && (await readPid(session)) === pid;
  } catch (error) {
    if (!messageOf(error).includes('statement pooling mode')) throw error;
    return false;
  } finally {
    await other.close();
  }
}

async function readPid(session: Session): Promise<number | undefined> {
  const [row] = await session.script<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return row?.pid;
}
