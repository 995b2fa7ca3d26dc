// An error and its causes as text, for the log.

/** The stacks of an error and its causes. */
export function renderStack(error: Error): string {
  return causesOf(error)
    .map(({ stack, message }) => stack ?? message)
    .join('\ncaused by: ');
}

function causesOf(error: unknown): Error[] {
  const found: Error[] = [];
  for (let next = error; next instanceof Error && !found.includes(next); next = next.cause) found.push(next);
  return found;
}
