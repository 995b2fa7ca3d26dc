// React's view of the service: the live state, replies of requests, and the address.

import type { DashboardSession, DashboardSummary } from '@millrace/protocol';
import { createContext, useCallback, useContext, useEffect, useState, useSyncExternalStore } from 'react';
import { type Address, parseAddress } from '../logic/address.ts';
import type { LiveFeed, LiveState } from './live.ts';
import { isAborted, request } from './request.ts';

interface ApiReply<T> {
  readonly data?: T;
  readonly error?: Error;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

/** Reads `path`, again when it or `revision` changes; keeps the reply before until the next one is there. Undefined reads nothing. */
export function useReply<T>(path: string | undefined, revision: unknown = 0): ApiReply<T> {
  const [state, setState] = useState<{ path?: string; data?: T; error?: Error }>({});
  const [round, setRound] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: revision and round only say that it is time to read again
  useEffect(() => {
    if (path === undefined) return;
    const stopped = new AbortController();
    request<T>(path, { signal: stopped.signal }).then(
      (data) => setState({ path, data }),
      (error: Error) => {
        if (!isAborted(error) && !stopped.signal.aborted) setState({ path, error });
      },
    );
    return () => stopped.abort();
  }, [path, revision, round]);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  const isCurrent = state.path === path;
  return {
    ...(isCurrent && state.data !== undefined ? { data: state.data } : {}),
    ...(isCurrent && state.error !== undefined ? { error: state.error } : {}),
    isLoading: path !== undefined && !isCurrent,
    reload,
  };
}

const fillingMs = 500;

/** Read again when rollouts changed, and while the server is still reading them. */
export function useSummary(everyMs: number): ApiReply<DashboardSummary> {
  const revision = useSlowRevision(everyMs);
  const reply = useReply<DashboardSummary>('/dashboard/api/summary', revision);
  useRepeat(reply.data?.complete === false, reply.reload);
  return reply;
}

/** Calls back twice a second while it is needed. */
export function useRepeat(isNeeded: boolean, again: () => void): void {
  useEffect(() => {
    if (!isNeeded) return;
    const timer = setInterval(again, fillingMs);
    return () => clearInterval(timer);
  }, [isNeeded, again]);
}

interface Surroundings {
  readonly feed: LiveFeed;
  readonly session: DashboardSession;
  /** Asks before it does something; says what came of it. */
  readonly act: (action: Action) => void;
}

export interface Action {
  readonly title: string;
  readonly text: string;
  readonly button: string;
  readonly isDangerous?: boolean;
  readonly run: () => Promise<string>;
}

export const SurroundingsContext = createContext<Surroundings | undefined>(undefined);

export function useSurroundings(): Surroundings {
  const found = useContext(SurroundingsContext);
  if (found === undefined) throw new Error('a page was drawn outside of the dashboard');
  return found;
}

export function useLive(): LiveState {
  const { feed } = useSurroundings();
  return useSyncExternalStore(feed.subscribe, feed.read);
}

/** Grows at most once in `everyMs` while rollouts change. */
export function useSlowRevision(everyMs: number): number {
  const { feed } = useSurroundings();
  const [shown, setShown] = useState(() => feed.read().revision);
  useEffect(() => {
    const timer = setInterval(() => setShown(feed.read().revision), everyMs);
    return () => clearInterval(timer);
  }, [feed, everyMs]);
  return shown;
}

export function useAddress(): Address {
  const hash = useSyncExternalStore(
    (listener) => {
      addEventListener('hashchange', listener);
      return () => removeEventListener('hashchange', listener);
    },
    () => location.hash,
  );
  return parseAddress(hash);
}

export function useNow(everyMs = 1000): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
