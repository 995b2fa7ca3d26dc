// A gateway that keeps what it forwards for each session, such as rLLM's, has the session in its address: `{session}` in the address of a
// backend stands for the id of the rollout.

const place = /\{session\}|%7Bsession%7D/gi;

export function hasSession(url: string): boolean {
  return url.search(place) >= 0;
}

/** Without a session, for health checks and other questions that belong to no rollout. */
export function toSessionAddress(url: string, session = 'probe'): string {
  return url.replace(place, encodeURIComponent(session));
}
