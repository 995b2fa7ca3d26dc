// All nodes of a parsed script in order, each with what it is inside of.

import { type Command, forEachChild, type SyntaxNode, type Word, type WordPart } from 'unbash';

export interface Visited {
  readonly node: SyntaxNode;
  /** Absent for the script. */
  readonly parent?: Visited;
  /** In how many substitutions it is. */
  readonly depth: number;
}

const mostNodes = 5000;
/** Each is parsed again when it is visited. */
const deepest = 6;

/** Without recursion. Undefined for a script that is too large or too deep to examine while a task is submitted. */
export function walk(root: SyntaxNode): Visited[] | undefined {
  const found: Visited[] = [];
  const open: Visited[] = [{ node: root, depth: 0 }];
  for (let visited = open.pop(); visited !== undefined; visited = open.pop()) {
    const parent = visited;
    found.push(parent);
    if (found.length > mostNodes || parent.depth > deepest) return undefined;
    const depth = parent.depth + (isSubstitution(parent.node) ? 1 : 0);
    const children: Visited[] = [];
    forEachChild(parent.node, (node) => children.push({ node, parent, depth }));
    open.push(...children.reverse());
  }
  return found;
}

function isSubstitution({ type }: SyntaxNode): boolean {
  return type === 'CommandExpansion' || type === 'ProcessSubstitution' || type === 'ArithmeticExpansion' || type === 'ParameterExpansion';
}

/** Whether bash runs it in its own process, from which nothing comes back but output. */
export function isInSubshell({ node, parent }: Visited): boolean {
  for (let [child, above] = [node, parent]; above !== undefined; [child, above] = [above.node, above.parent])
    if (startsProcess(above.node, child)) return true;
  return false;
}

function startsProcess(node: SyntaxNode, child: SyntaxNode): boolean {
  if (node.type === 'Statement') return node.background === true;
  if (node.type === 'Pipeline') return node.commands.length > 1 && child.type !== 'Time' && child.type !== 'Negation';
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

interface PlacedPart {
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
