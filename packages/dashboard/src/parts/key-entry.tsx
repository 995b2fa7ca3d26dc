// Asks for the key of the service.

import { type FormEvent, useState } from 'react';
import { storeKey } from '../api/key.ts';

export function KeyEntry({ reason, onKey }: { readonly reason: string; readonly onKey: () => void }) {
  const [key, setKey] = useState('');
  const submit = (event: FormEvent) => {
    event.preventDefault();
    storeKey(key.trim());
    onKey();
  };
  return (
    <main className="key-entry">
      <form onSubmit={submit}>
        <h1>Millrace</h1>
        <p>This service needs a key. A key with the right to read shows everything; buttons appear with a key that may use them.</p>
        <label htmlFor="key">Key</label>
        {/* biome-ignore lint/a11y/noAutofocus: it is the only field of the page */}
        <input id="key" type="password" autoComplete="off" autoFocus value={key} onChange={(event) => setKey(event.target.value)} />
        {reason === '' ? null : (
          <p className="note note-bad" role="alert">
            {reason}
          </p>
        )}
        <button type="submit" className="primary" disabled={key.trim() === ''}>
          Open
        </button>
        <p className="faint">It is kept in this tab only, and forgotten with it.</p>
      </form>
    </main>
  );
}
