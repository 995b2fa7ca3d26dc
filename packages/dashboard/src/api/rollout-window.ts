// The part of the list of rollouts that is on the screen, page by page from the server.

import type { BriefPage, BriefRollout } from '@millrace/protocol';
import { useCallback, useEffect, useRef, useState } from 'react';
import { useRepeat } from './hooks.ts';
import { isAborted, request, toQuery } from './request.ts';

const pageSize = 200;

interface RolloutWindow {
  readonly page?: Omit<BriefPage, 'rows' | 'offset'> | undefined;
  readonly error?: Error;
  /** Absent while it is being read. */
  readonly rowAt: (index: number) => BriefRollout | undefined;
  readonly onWindow: (first: number, last: number) => void;
}

interface Pages {
  key: string;
  rows: Map<number, readonly BriefRollout[]>;
}

/** Pages of the filter before stay on the screen until the new ones are there. */
export function useRolloutWindow(query: Readonly<Record<string, string>>, revision: number): RolloutWindow {
  const key = toQuery(query);
  const pages = useRef<Pages>({ key, rows: new Map() });
  const [shown, setShown] = useState<{ first: number; last: number }>({ first: 0, last: 1 });
  const [state, setState] = useState<{ page?: RolloutWindow['page']; error?: Error }>({});
  const [round, setRound] = useState(0);
  useRepeat(
    state.page?.complete === false,
    useCallback(() => setRound((before) => before + 1), []),
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: a revision says that it is time to read again
  useEffect(() => {
    const stopped = new AbortController();
    const wanted: number[] = [];
    for (let at = Math.floor(shown.first / pageSize); at * pageSize < Math.max(1, shown.last); at++) wanted.push(at);
    const read = async (at: number) => {
      const path = `/dashboard/api/rollouts${toQuery({ ...query, offset: at * pageSize, limit: pageSize })}`;
      const { rows, offset: _, ...page } = await request<BriefPage>(path, { signal: stopped.signal });
      if (stopped.signal.aborted) return;
      if (pages.current.key !== key) pages.current = { key, rows: new Map() };
      pages.current.rows.set(at, rows);
      setState({ page });
    };
    Promise.all(wanted.map(read)).catch((error: Error) => {
      if (!isAborted(error) && !stopped.signal.aborted) setState((before) => ({ ...before, error }));
    });
    return () => stopped.abort();
  }, [key, revision, round, Math.floor(shown.first / pageSize), Math.floor(Math.max(0, shown.last - 1) / pageSize)]);
  const onWindow = useCallback((first: number, last: number) => setShown({ first, last }), []);
  const rowAt = (index: number) => pages.current.rows.get(Math.floor(index / pageSize))?.[index % pageSize];
  return { ...state, rowAt, onWindow };
}
