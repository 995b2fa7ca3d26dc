// The part of the address after `#`: which page is shown, and with what. A link to it shows the same; it never holds a key.

export interface Address {
  readonly page: string;
  /** What the page is about, such as the id of a rollout. */
  readonly subject?: string;
  readonly query: Readonly<Record<string, string>>;
}

export function parseAddress(hash: string): Address {
  const [path = '', search = ''] = hash.replace(/^#?\/?/, '').split('?', 2);
  const [page = '', ...rest] = path.split('/').map(decode);
  const subject = rest.join('/');
  const query = Object.fromEntries(new URLSearchParams(search));
  return { page: page || 'now', ...(subject === '' ? {} : { subject }), query };
}

export function toAddress(page: string, subject?: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) => (value ? [[name, value] as [string, string]] : [])),
  ).toString();
  return `#/${page}${subject === undefined ? '' : `/${encodeURIComponent(subject)}`}${search === '' ? '' : `?${search}`}`;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // not encoded by us: it is shown as it is
  }
}
