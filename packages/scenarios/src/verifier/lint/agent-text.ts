// Which words of a check script hold text that the agent wrote: the answer, its files, what its programs print, and variables that were set
// from these. It does not follow the order of commands: a variable that is tested once for digits counts as a number everywhere.

import type { Assignment, Command, Script, SyntaxNode, Word, WordPart } from 'unbash';
import { literalOf, partsOf, type Visited, wordsOf } from './walk.ts';

export interface AgentText {
  /** Whether the word contains such text. */
  has(word: Word): boolean;
  isIn(part: WordPart): boolean;
  isVariable(name: string): boolean;
  /** Whether the output of a substitution is such text. */
  isPrinted(script: Script | undefined): boolean;
}

/** How often variables are passed on from one to the next. */
const maxRounds = 20;

/** Programs that print their input, or a part of it. */
const printers =
  /^(cat|head|tail|sed|cut|tr|sort|uniq|tac|rev|jq|tee|xargs|paste|fold|fmt|column|base64|strings|judged|grep|egrep|fgrep|awk|gawk|mawk|printf|echo)$/;
const isCount = (option: string) => option === '--count' || (/^-[a-zA-Z]+$/.test(option) && option.includes('c'));

export function findAgentText(nodes: readonly Visited[]): AgentText {
  const numbers = new Set(nodes.flatMap(({ node }) => testedNumbers(node)));
  const variables = new Set(['ANSWER'].filter((name) => !numbers.has(name)));
  const isIn = (part: WordPart): boolean => {
    if (part.type === 'SimpleExpansion') return variables.has(part.text.slice(1));
    if (part.type === 'ParameterExpansion') return part.prefix !== '#' && variables.has(part.parameter);
    if (part.type === 'CommandExpansion') return isPrinted(part.script);
    return false;
  };
  const isPrinted = (script: Script | undefined): boolean => script !== undefined && printsAgentText(script, has);
  const has = (word: Word): boolean => partsOf(word).some(({ part }) => isIn(part));
  for (let [before, round] = [-1, 0]; before < variables.size && round < maxRounds; round += 1) {
    before = variables.size;
    for (const { node } of nodes) for (const name of assigned(node, has)) if (!numbers.has(name)) variables.add(name);
  }
  return { has, isIn, isPrinted, isVariable: (name) => variables.has(name) };
}

/** Variables that a node sets from text of the agent. */
function assigned(node: SyntaxNode, has: (word: Word) => boolean): string[] {
  if (node.type === 'Assignment') return isFromAgent(node, has) ? [node.name] : [];
  if (node.type === 'For' || node.type === 'Select') return node.wordlist?.some(has) ? [node.name.text] : [];
  if (node.type !== 'Command') return [];
  const [name, ...args] = wordsOf(node).map((word) => literalOf(word) ?? '');
  if (name !== 'read' && name !== 'mapfile' && name !== 'readarray') return [];
  return args.filter((arg) => /^[A-Za-z_]\w*$/.test(arg));
}

function isFromAgent({ value }: Assignment, has: (word: Word) => boolean): boolean {
  return value.type === 'Word' ? has(value) : value.elements.some(has);
}

/** The last command of a substitution prints what it returns. */
function printsAgentText(script: Script, has: (word: Word) => boolean): boolean {
  const last = script.commands.at(-1)?.command;
  if (last === undefined) return false;
  const all = last.type === 'AndOr' ? last.commands : [last];
  return all.some((one) => {
    const command = one.type === 'Pipeline' ? one.commands.at(-1) : one;
    return command?.type === 'Command' && commandPrints(command, has, one.type === 'Pipeline' && one.commands.length > 1);
  });
}

function commandPrints(command: Command, has: (word: Word) => boolean, isFed: boolean): boolean {
  const [name, ...args] = wordsOf(command);
  if (name === undefined) return command.redirects.some((redirect) => redirect.operator === '<'); // $(<file)
  const program = literalOf(name) ?? '';
  if (!printers.test(program)) return false;
  if (program === 'echo' || program === 'printf') return args.some(has);
  if (program.endsWith('grep') && args.some((arg) => isCount(arg.value))) return false;
  if (program.endsWith('awk') && !isFed && args.length < 2 && command.redirects.length === 0) return false;
  return !readsHiddenFile(args);
}

/** Only files with an absolute path outside of /workspace: the check's own. */
function readsHiddenFile(args: readonly Word[]): boolean {
  const files = args.map((arg) => literalOf(arg) ?? '').filter((arg) => arg.includes('/') || /\.\w+$/.test(arg));
  return files.length > 0 && files.every((file) => file.startsWith('/') && !file.startsWith('/workspace'));
}

/** `[[ $x =~ ^[0-9]+$ ]]` and `case $x in *[!0-9]*)` test that x is a number. */
function testedNumbers(node: SyntaxNode): string[] {
  if (node.type === 'TestBinary' && node.operator === '=~') return isDigits(node.right.text) ? variablesOf(node.left) : [];
  if (node.type === 'Case')
    return node.items.some(({ pattern }) => pattern.some(({ text }) => /\[[!^]0-9\]/.test(text))) ? variablesOf(node.word) : [];
  return [];
}

const isDigits = (regex: string): boolean =>
  endsWithDigits(regex) || (/^\^-?\??\(?(\[0-9\]|\[\[:digit:\]\])/.test(regex) && regex.endsWith('$') && !/[|*]\.|\.\*/.test(regex));

function endsWithDigits(regex: string): boolean {
  const last = Math.max(regex.lastIndexOf('[0-9]'), regex.lastIndexOf('[[:digit:]]'));
  return last > 0 && regex.startsWith('^') && regex.endsWith('$') && !regex.includes('|') && !regex.includes('.', last);
}

function variablesOf(word: Word): string[] {
  return partsOf(word).flatMap(({ part }) => {
    if (part.type === 'SimpleExpansion') return [part.text.slice(1)];
    return part.type === 'ParameterExpansion' ? [part.parameter] : [];
  });
}
