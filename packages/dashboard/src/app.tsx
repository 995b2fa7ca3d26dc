// The frame of the dashboard: asks for a key if one is needed, then shows the page of the address, the way to the other pages, and the
// state of the connection.

import type { DashboardSession } from '@millrace/protocol';
import { type ReactNode, useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import { type Action, SurroundingsContext, useAddress, useSurroundings } from './api/hooks.ts';
import { storeKey } from './api/key.ts';
import { LiveFeed } from './api/live.ts';
import { RequestError, request } from './api/request.ts';
import { toAddress } from './logic/address.ts';
import { BatchPage } from './pages/batch.tsx';
import { BatchesPage } from './pages/batches.tsx';
import { FailuresPage } from './pages/failures.tsx';
import { GroupPage } from './pages/group.tsx';
import { NowPage } from './pages/now.tsx';
import { RolloutPage } from './pages/rollout.tsx';
import { RolloutsPage } from './pages/rollouts.tsx';
import { ScanPage } from './pages/scan.tsx';
import { TrainingPage } from './pages/training.tsx';
import { Confirm } from './parts/confirm.tsx';
import { KeyEntry } from './parts/key-entry.tsx';
import { Shortcuts, useShortcuts } from './parts/shortcuts.tsx';
import { ThemeButton } from './parts/theme.tsx';

type Entry = { readonly session: DashboardSession } | { readonly refusal: string } | { readonly waiting: string };

export function App() {
  const [entry, setEntry] = useState<Entry>({ waiting: '' });
  const [round, setRound] = useState(0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    request<DashboardSession>('/dashboard/api/session').then(
      (session) => setEntry({ session }),
      (error: Error) => {
        if (error instanceof RequestError && (error.status === 401 || error.status === 403)) {
          const isFirst = round === 0 && !sessionStorage.getItem('millrace-key');
          storeKey(undefined);
          return setEntry({ refusal: isFirst ? '' : error.message });
        }
        setEntry({ waiting: error.message });
        timer = setTimeout(() => setRound((before) => before + 1), 2000);
      },
    );
    return () => clearTimeout(timer);
  }, [round]);
  if ('refusal' in entry) return <KeyEntry reason={entry.refusal} onKey={() => setRound((before) => before + 1)} />;
  if ('waiting' in entry) return <main className="key-entry">{entry.waiting === '' ? null : <p role="status">{entry.waiting} …</p>}</main>;
  return <Frame session={entry.session} />;
}

const pages: readonly { readonly name: string; readonly title: string; readonly live?: boolean }[] = [
  { name: 'now', title: 'Now', live: true },
  { name: 'rollouts', title: 'Rollouts' },
  { name: 'failures', title: 'Failures' },
  { name: 'scan', title: 'Scan' },
  { name: 'training', title: 'Training' },
  { name: 'batches', title: 'Batches', live: true },
];

function Frame({ session }: { readonly session: DashboardSession }) {
  const feed = useMemo(() => new LiveFeed(), []);
  const [action, setAction] = useState<Action | undefined>();
  const [isHelp, setHelp] = useState(false);
  useEffect(() => {
    if (session.live) feed.start();
  }, [feed, session.live]);
  useShortcuts({ onHelp: () => setHelp((before) => !before) });
  const surroundings = useMemo(() => ({ feed, session, act: setAction }), [feed, session]);
  const address = useAddress();
  return (
    <SurroundingsContext value={surroundings}>
      <button type="button" className="skip" onClick={() => document.getElementById('content')?.focus()}>
        To the content
      </button>
      <header className="top">
        <a className="brand" href={toAddress(session.live ? 'now' : 'rollouts')}>
          <Brand /> Millrace
        </a>
        <nav aria-label="Pages">
          {pages
            .filter((page) => session.live || page.live !== true)
            .map((page) => (
              <a key={page.name} href={toAddress(page.name)} aria-current={isOn(page.name, address.page) ? 'page' : undefined}>
                {page.title}
              </a>
            ))}
        </nav>
        <div className="top-aside">
          {session.live ? <LinkState feed={feed} /> : <span className="faint">{session.title}</span>}
          {session.right === 'read' && session.live ? <span className="tag tone-faint">read only</span> : null}
          <button type="button" className="quiet" onClick={() => setHelp(true)} aria-label="Keys" title="Keys (?)">
            ?
          </button>
          <ThemeButton />
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        <Page />
      </main>
      {action === undefined ? null : <Confirm action={action} onClose={() => setAction(undefined)} />}
      {isHelp ? <Shortcuts onClose={() => setHelp(false)} /> : null}
    </SurroundingsContext>
  );
}

/** Part of the page, not a file: an exported page has no files. */
function Brand() {
  return (
    <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#0f766e" />
      <g fill="none" stroke="#fff" strokeWidth="2.4" strokeLinecap="round">
        <circle cx="16" cy="14" r="7.2" />
        <path d="M16 4.2v19.6M6.2 14h19.6M9.2 7.2l13.6 13.6M22.8 7.2 9.2 20.8" />
        <path d="M4 27c3 0 3-1.8 6-1.8S13 27 16 27s3-1.8 6-1.8 3 1.8 6 1.8" opacity=".75" />
      </g>
    </svg>
  );
}

function isOn(name: string, page: string): boolean {
  const parents: Readonly<Record<string, string>> = { rollout: 'rollouts', group: 'rollouts', batch: 'batches' };
  return name === (parents[page] ?? page);
}

function Page(): ReactNode {
  const { page, subject, query } = useAddress();
  const live = useSessionLive();
  useEffect(() => {
    document.title = `${subject ?? page} · Millrace`;
  }, [page, subject]);
  if (page === 'rollout' && subject !== undefined) return <RolloutPage key={subject} id={subject} query={query} />;
  if (page === 'group' && subject !== undefined) return <GroupPage key={subject} id={subject} query={query} />;
  if (page === 'batch' && subject !== undefined) return <BatchPage key={subject} id={subject} />;
  if (page === 'failures') return <FailuresPage />;
  if (page === 'scan') return <ScanPage query={query} />;
  if (page === 'training') return <TrainingPage scenario={query.scenario} />;
  if (page === 'batches' && live) return <BatchesPage />;
  if (page === 'rollouts' || !live) return <RolloutsPage query={query} />;
  return <NowPage />;
}

function useSessionLive(): boolean {
  return useSurroundings().session.live;
}

function LinkState({ feed }: { readonly feed: LiveFeed }) {
  const { link } = useSyncExternalStore(feed.subscribe, feed.read);
  const texts = { connecting: 'connecting', live: 'live', lost: 'reconnecting' } as const;
  return (
    <span className={`link link-${link}`} role="status">
      {texts[link]}
    </span>
  );
}
