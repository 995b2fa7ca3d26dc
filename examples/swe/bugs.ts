// Bugs of open-source Python projects: the release that has the bug, and the next one, which repairs it and has tests for it.

export interface Bug {
  /** The name on PyPI. */
  readonly name: string;
  readonly repo: string;
  readonly from: string;
  readonly to: string;
  /** Written for the agent. */
  readonly problem: string;
}

export const bugs: readonly Bug[] = [
  {
    name: 'tabulate',
    repo: 'astanin/python-tabulate',
    from: '0.8.8',
    to: '0.8.9',
    problem: 'A column of strings such as "13,000" is treated as a column of numbers although `floatfmt` has no thousands separator.',
  },
  {
    name: 'parse',
    repo: 'r1chardj0n3s/parse',
    from: '1.21.0',
    to: '1.21.1',
    problem: 'The fraction of a second in a parsed time is not exact: some microseconds are off by one.',
  },
  {
    name: 'parse',
    repo: 'r1chardj0n3s/parse',
    from: '1.20.2',
    to: '1.21.0',
    problem: 'The grouping options of formats are not understood: `parse("{:,}", "1,234")` and `parse("{:_}", "1_234")` find nothing.',
  },
  {
    name: 'cachetools',
    repo: 'tkem/cachetools',
    from: '7.2.8',
    to: '7.3.0',
    problem:
      '`LFUCache` evicts an arbitrary item when several items have been used equally often. It should evict the one that was inserted first.',
  },
  {
    name: 'cachetools',
    repo: 'tkem/cachetools',
    from: '7.2.5',
    to: '7.2.6',
    problem:
      'Functions that are decorated with `cached` or `cachedmethod` and a `condition` do not treat waiting callers and errors of the function correctly, and `popitem` of some caches counts as an access.',
  },
  {
    name: 'sqlparse',
    repo: 'andialbrecht/sqlparse',
    from: '0.5.4',
    to: '0.5.5',
    problem: '`sqlparse.split` does not end a statement after BEGIN TRANSACTION: it takes it for the start of a block.',
  },
  {
    name: 'sqlparse',
    repo: 'andialbrecht/sqlparse',
    from: '0.5.1',
    to: '0.5.2',
    problem: '`format(sql, strip_comments=True)` also removes optimizer hints such as `/*+ PARALLEL(t, 4) */`, which are no comments.',
  },
  {
    name: 'xmltodict',
    repo: 'martinblech/xmltodict',
    from: '1.0.3',
    to: '1.0.4',
    problem:
      '`unparse` treats bytes, bytearray and memoryview as text of the wrong encoding or as lists: it should decode them, with `bytes_errors` for what cannot be decoded, and refuse text that is not allowed in a comment.',
  },
  {
    name: 'xmltodict',
    repo: 'martinblech/xmltodict',
    from: '1.0.2',
    to: '1.0.3',
    problem:
      '`unparse` fails or writes the wrong text if the text of an element with attributes is not a string, such as a number or None.',
  },
  {
    name: 'inflection',
    repo: 'jpvanhal/inflection',
    from: '0.3.0',
    to: '0.3.1',
    problem: 'Wrong plurals: `pluralize("human")` and `pluralize("potato")` should be "humans" and "potatoes".',
  },
  {
    name: 'inflection',
    repo: 'jpvanhal/inflection',
    from: '0.3.1',
    to: '0.4.0',
    problem: 'Wrong plurals: "passerby" should become "passersby", and back again.',
  },
  {
    name: 'boltons',
    repo: 'mahmoud/boltons',
    from: '26.0.0',
    to: '26.1.0',
    problem:
      'Several small bugs: slices and indexes of an `IndexedSet` from which items were removed, `copy.copy` of an `OrderedMultiDict`, path-like objects in `AtomicSaver` and `iter_find_files`, and `singularize` of words that end in a double s.',
  },
  {
    name: 'boltons',
    repo: 'mahmoud/boltons',
    from: '24.0.0',
    to: '24.1.0',
    problem:
      'A copy of a sentinel of `typeutils.make_sentinel` is another object; it should be the same one. `iter_find_files` should take a `max_depth`, and `research` should accept an `enter` function.',
  },
];
