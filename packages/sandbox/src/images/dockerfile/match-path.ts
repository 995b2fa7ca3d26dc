// Patterns of paths, as in COPY and .dockerignore: `*` and `?` match inside one name, `**` matches any number of folders.

/** Both relative, without a leading slash. */
export function matchPath(pattern: string, path: string): boolean {
  return toRegExp(pattern).test(path);
}

/** The rules of a .dockerignore file: whether a path is left out. The last rule that matches counts; a rule also covers what is below it. */
export function parseIgnore(text: string): (path: string) => boolean {
  const rules = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const keeps = line.startsWith('!');
      const pattern = line
        .slice(keeps ? 1 : 0)
        .replace(/^\/+/, '')
        .replace(/\/+$/, '');
      return { keeps, pattern: toRegExp(pattern, '(?:/.*)?') };
    });
  return (path) => rules.reduce((isIgnored, { keeps, pattern }) => (pattern.test(path) ? !keeps : isIgnored), false);
}

function toRegExp(pattern: string, ending = ''): RegExp {
  const parts = pattern.match(/\*\*\/|\*\*|\*|\?|\[(?:\\.|[^\]\\])+\]|\\.|./gs) ?? [];
  const source = parts.map((part) => {
    if (part === '**/') return '(?:.*/)?';
    if (part === '**') return '.*';
    if (part === '*') return '[^/]*';
    if (part === '?') return '[^/]';
    if (part.startsWith('[') && part.length > 1) return part.replace(/^\[\^/, '[^');
    return part.replace(/^\\(.)$/, '$1').replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  });
  return new RegExp(`^${source.join('')}${ending}$`, 's');
}
