// All nodes of a parsed script in order, each with what it is inside of.

import { type Command, forEachChild, type SyntaxNode, type Word, type WordPart } from 'unbash';

export interface Visited {
  readonly node: SyntaxNode;
  /** Absent for the script. */
  readonly parent?: Visited;
}

/** Without recursion: a script may nest deeply. */
export function walk(root: SyntaxNode): Visited[] {
  const found: Visited[] = [];
  const open: Visited[] = [{ node: root }];
  for (let visited = open.pop(); visited !== undefined; visited = open.pop()) {
    const parent = visited;
    found.push(parent);
    const children: Visited[] = [];
    forEachChild(parent.node, (node) => children.push({ node, parent }));
    open.push(...children.reverse());
  }
  return found;
}

/** Whether bash runs it in its own process, from which nothing comes back but output. */
export function isInSubshell({ node, parent }: Visited): boolean {
  for (let [child, above] = [node, parent]; above !== undefined; [child, above] = [above.node, above.parent])
    if (startsProcess(above.node, child)) return true;
  return false;
}

function startsProcess(node: SyntaxNode, child: SyntaxNode): boolean {
  if (node.type === 'Statement') return node.background === true;
  if (node.type === 'Pipeline') return node.commands.length > 1 && node.commands.some((command) => command === child);
  return node.type === 'Subshell' || node.type === 'Coproc' || node.type === 'CommandExpansion' || node.type === 'ProcessSubstitution';
}

/** The words of a command, its name first. */
export function wordsOf(command: Command): Word[] {
  return [command.name, ...command.args].flatMap((word) => (word?.type === 'Word' ? [word] : []));
}

/** The text of a word without expansions; undefined if it has any. */
export function literalOf(word: Word | undefined): string | undefined {
  if (word === undefined) return undefined;
  return partsOf(word).every(({ part }) => isLiteral(part)) ? word.value : undefined;
}

function isLiteral(part: WordPart): boolean {
  return ['Literal', 'SingleQuoted', 'AnsiCQuoted', 'Glob', 'DoubleQuoted', 'LocaleString', 'BraceExpansion'].includes(part.type);
}

export interface PlacedPart {
  readonly part: WordPart;
  readonly isQuoted: boolean;
}

/** The parts of a word, and those inside of double quotes. */
export function partsOf(word: { readonly parts?: readonly WordPart[] | undefined }, isQuoted = false): PlacedPart[] {
  return (word.parts ?? []).flatMap((part) => {
    const isString = part.type === 'DoubleQuoted' || part.type === 'LocaleString';
    return [{ part, isQuoted }, ...(isString ? partsOf(part, true) : [])];
  });
}
