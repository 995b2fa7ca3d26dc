// Asks before something is changed, does it, and says what came of it.

import { useEffect, useRef, useState } from 'react';
import type { Action } from '../api/hooks.ts';
import { ErrorNote } from './bits.tsx';

export function Confirm({ action, onClose }: { readonly action: Action; readonly onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [state, setState] = useState<{ busy?: boolean; outcome?: string; error?: Error }>({});
  useEffect(() => dialog.current?.showModal(), []);
  const run = async () => {
    setState({ busy: true });
    try {
      setState({ outcome: await action.run() });
    } catch (error) {
      setState({ error: error instanceof Error ? error : new Error(String(error)) });
    }
  };
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="confirm-title">
      <h2 id="confirm-title">{action.title}</h2>
      <p>{state.outcome ?? action.text}</p>
      <ErrorNote error={state.error} />
      <div className="dialog-buttons">
        <button type="button" onClick={() => dialog.current?.close()}>
          {state.outcome === undefined ? 'Leave it' : 'Close'}
        </button>
        {state.outcome === undefined ? (
          <button
            type="button"
            className={action.isDangerous ? 'danger' : 'primary'}
            disabled={state.busy === true}
            onClick={() => void run()}
          >
            {action.button}
          </button>
        ) : null}
      </div>
    </dialog>
  );
}
