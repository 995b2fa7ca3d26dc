// Which links a copy of a folder may hold: those that stay inside, so that a reader of the copy reads only what was copied.

/**
 * Whether a link stays inside: its target may contain `..` only at the beginning, and at most once for each folder above the link. Those
 * are real folders, and every name after them is inside or another such link. A `..` after a name could leave through another link.
 */
export function staysInside(path: string, target: string): boolean {
  const parts = target.split('/').filter((part) => part !== '' && part !== '.');
  const ups = parts.lastIndexOf('..') + 1;
  const depth = path.split('/').length - 1;
  return target !== '' && !target.startsWith('/') && ups <= depth && parts.slice(0, ups).every((part) => part === '..');
}
