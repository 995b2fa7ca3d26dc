// Calls the service for each of many things, a few at a time. The results are in the order of the things.

const callsAtOnce = 16;

export async function callInPieces<T, R>(things: readonly T[], call: (thing: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < things.length; from += callsAtOnce)
    results.push(...(await Promise.all(things.slice(from, from + callsAtOnce).map(call))));
  return results;
}
