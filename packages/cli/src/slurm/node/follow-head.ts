// Follows the head of a deployment: its address, and when it changes, because the head was started again on another node or port.

import { sleep } from '@millrace/base/clock';
import type { Deployment, HeadRecord } from '../deployment/deployment.ts';

const pollMs = 1000;

/** Waits until there is a head. Rejects with the signal's reason. */
export async function waitForHead(deployment: Deployment, signal: AbortSignal): Promise<HeadRecord> {
  for (;;) {
    const head = await deployment.readHead();
    if (head !== undefined) return head;
    await sleep(pollMs, { signal });
  }
}

/** Resolves when there is a head at another address. A head that is gone may come back to the same one. Rejects with the signal's reason. */
export async function waitForMove(deployment: Deployment, head: HeadRecord, signal: AbortSignal): Promise<void> {
  for (;;) {
    await sleep(pollMs, { signal });
    const now = await deployment.readHead();
    if (now !== undefined && now.url !== head.url) return;
  }
}
