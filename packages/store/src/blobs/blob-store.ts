// The contract of a blob store: where large, immutable bytes are kept outside of the store's rows. Small on purpose, so that a folder, a
// bucket or anything with names and bytes can be one. The contract suite in testkit checks every implementation.

export interface BlobEntry {
  readonly key: string;
  readonly bytes: number;
  /** When it was written, by the clock of the blob store. */
  readonly changedAtMs: number;
}

/** Keys are parts of letters, digits, `.`, `_` and `-`, joined by `/`. Every call throws if the blob store cannot be reached. */
export interface BlobStore {
  /** For messages: where the blobs are, without secrets. */
  readonly name: string;
  /** Durable, and visible to `get` in every process, when it resolves. A reader sees all bytes or none. Replaces what has the key. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** Absent if there is none. */
  get(key: string): Promise<Buffer | undefined>;
  /** Keys that do not exist are ignored. */
  delete(keys: readonly string[]): Promise<void>;
  /** All blobs whose key begins with `prefix`, in any order. One that is written or deleted meanwhile may be missing. */
  list(prefix: string): AsyncIterable<BlobEntry>;
  /** What is free on its disk, where it has one. */
  freeBytes?(): Promise<number>;
}

const keyPattern = /^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/;

export function checkKey(key: string): void {
  if (!keyPattern.test(key) || key.length > 512) throw new Error(`${JSON.stringify(key)} is not the key of a blob`);
}
