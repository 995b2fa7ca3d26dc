// The keys of the dashboard, and the page that lists them.

import { useEffect, useRef } from 'react';
import { toAddress } from '../logic/address.ts';

const places: Readonly<Record<string, string>> = { n: 'now', r: 'rollouts', f: 'failures', s: 'scan', t: 'training', b: 'batches' };

const lists: readonly (readonly [string, string])[] = [
  ['g then n, r, f, s, t, b', 'Now, Rollouts, Failures, Scan, Training, Batches'],
  ['/', 'search'],
  ['j or ↓, k or ↑', 'next and previous rollout; next and previous turn'],
  ['Enter', 'open the chosen rollout'],
  ['. and ,', 'replay a conversation: next and previous turn'],
  ['1 to 5', 'the tabs of a rollout'],
  ['[ and ]', 'previous and next sibling'],
  ['Esc', 'back'],
  ['?', 'this list'],
];

/** Keys that pages handle themselves arrive as an event of this name. */
const pageKey = 'millrace-key-press';

export function useShortcuts({ onHelp }: { readonly onHelp: () => void }): void {
  const help = useRef(onHelp);
  help.current = onHelp;
  useEffect(() => {
    let isGoing = false;
    const listen = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const place = isGoing ? places[event.key] : undefined;
      isGoing = event.key === 'g';
      if (place !== undefined) location.hash = toAddress(place);
      else if (event.key === '?') help.current();
      else if (event.key === '/') focusSearch(event);
      else if (event.key === 'Escape' && document.querySelector('dialog[open]') === null) goBack();
      else window.dispatchEvent(new CustomEvent(pageKey, { detail: event.key }));
    };
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, []);
}

/** For keys of one page. */
export function usePageKeys(onKey: (key: string) => void): void {
  const handler = useRef(onKey);
  handler.current = onKey;
  useEffect(() => {
    const listen = (event: Event) => handler.current((event as CustomEvent<string>).detail);
    addEventListener(pageKey, listen);
    return () => removeEventListener(pageKey, listen);
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

function focusSearch(event: KeyboardEvent): void {
  const search = document.querySelector<HTMLInputElement>('input[type="search"]');
  if (search === null) return;
  event.preventDefault();
  search.focus();
}

function goBack(): void {
  if (history.length > 1) history.back();
}

export function Shortcuts({ onClose }: { readonly onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      <dl className="keys">
        {lists.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <div className="dialog-buttons">
        <button type="button" className="primary" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
