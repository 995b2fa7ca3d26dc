// All nodes of a parsed script in order, each with what it is inside of.

import { type Command, forEachChild, type SyntaxNode, type Word, type WordPart } from 'unbash';

export interface Visited {
  readonly node: SyntaxNode;
  /** From the script down to the parent. */
  readonly parents: readonly SyntaxNode[];
}

export function walk(root: SyntaxNode): Visited[] {
  const found: Visited[] = [];
  const visit = (node: SyntaxNode, parents: readonly SyntaxNode[]) => {
    found.push({ node, parents });
    const path = [...parents, node];
    forEachChild(node, (child) => visit(child, path));
  };
  visit(root, []);
  return found;
}

/** Whether bash runs it in a process of its own, from which nothing comes back but output. */
export function isInSubshell({ parents, node }: Visited): boolean {
  return [...parents, node].some((one, at, all) => {
    if (one.type === 'Statement') return one.background === true;
    if (one.type === 'Pipeline') return one.commands.length > 1 && all[at + 1] !== undefined;
    return one.type === 'Subshell' || one.type === 'Coproc' || one.type === 'CommandExpansion' || one.type === 'ProcessSubstitution';
  });
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
