// Text from outside that may not be JSON, for callers that check its shape anyway.

/** The value, or undefined for what is not JSON. */
export function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // no schema accepts it, so the caller reports it with its own words
  }
}
