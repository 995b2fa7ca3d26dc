// Where the store is: `postgres://user@host:port/database`, or the path of a file.

import { join } from 'node:path';

/** The name of the store's file in the data folder. */
export const storeFile = 'millrace.db';

export function isPostgresAddress(address: string): boolean {
  return /^postgres(ql)?:\/\//.test(address);
}

/** The address that the configuration names; the file in its data folder if it names none. */
export function toStoreAddress(config: { readonly data: string; readonly store: { readonly address?: string | undefined } }): string {
  return config.store.address ?? join(config.data, storeFile);
}

/** For logs and people: without its password. */
export function hidePassword(address: string): string {
  return address.replace(/(?<=^[a-z]+:\/\/[^:@/]*):[^@/]*(?=@)/, '').replace(/(?<=[?&]password=)[^&]*/, '…');
}
