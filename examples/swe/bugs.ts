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
    problem: 'Numbers that `format` writes are not parsed back by the same format in every case.',
  },
  {
    name: 'cachetools',
    repo: 'tkem/cachetools',
    from: '7.2.8',
    to: '7.3.0',
    problem: 'The caches with expiring items, and `cachedmethod`, do not behave as the tests of the next release expect.',
  },
  {
    name: 'cachetools',
    repo: 'tkem/cachetools',
    from: '7.2.5',
    to: '7.2.6',
    problem: 'The wrappers of `cached` and `cachedmethod` do not behave as documented for keys, locks and conditions.',
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
    problem: '`unparse` writes invalid XML for comments that are bytes, or whose text is not allowed in a comment.',
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
      'Several functions for sets, strings, lists, files and dicts give wrong results in cases that the tests of the next release show.',
  },
  {
    name: 'boltons',
    repo: 'mahmoud/boltons',
    from: '24.0.0',
    to: '24.1.0',
    problem: 'A copy of a sentinel of `typeutils.make_sentinel` is another object; it should be the same one.',
  },
];
