// The reader's key. It is kept for this tab only, and sent in a header: never in an address, which is logged and shared.

const name = 'millrace-key';

function readStoredKey(): string | undefined {
  return sessionStorage.getItem(name) ?? undefined;
}

export function storeKey(key: string | undefined): void {
  if (key === undefined) sessionStorage.removeItem(name);
  else sessionStorage.setItem(name, key);
}

export function authorization(): Record<string, string> {
  const key = readStoredKey();
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}
