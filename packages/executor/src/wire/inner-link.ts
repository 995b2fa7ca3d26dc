// Which links leave a sandbox: those that stay inside their folder, so that a reader of the copy reads only what was copied.

export interface LinkPlace {
  /** Of the link, relative to the folder. */
  readonly path: string;
  readonly target: string;
  /** Where the folder is in the sandbox. */
  readonly folder: string;
}

/** The Python of an image, to which virtual environments link. A check writes nothing there. */
const imagePython = /^\/usr\/(?:local\/)?bin\/python[0-9.]*$/;

/** The target that the copy of a link gets; undefined if it has none. An absolute target inside the folder becomes relative. */
export function toInnerTarget({ path, target, folder }: LinkPlace): string | undefined {
  if (imagePython.test(target)) return target;
  const inner = target === folder || target.startsWith(`${folder}/`) ? toRelative(path, target.slice(folder.length)) : target;
  return staysInside(path, inner) ? inner : undefined;
}

/** `rest` is empty or starts with a slash. */
function toRelative(path: string, rest: string): string {
  return `${'../'.repeat(path.split('/').length - 1)}.${rest}`;
}

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
