// Places where bash evaluates a text: as an expression, which can run commands, or as a pattern, which can match anything.

import type { Command, SyntaxNode, TestBinaryExpression, Word, WordPart } from 'unbash';
import type { AgentText } from './agent-text.ts';
import type { LintFault } from './lint-finding.ts';
import { literalOf, partsOf, type Visited, wordsOf } from './walk.ts';

const comparisons = new Set(['-eq', '-ne', '-lt', '-le', '-gt', '-ge']);
const matches = new Set(['=', '==', '!=', '=~']);

export function findEvaluatedText(nodes: readonly Visited[], agent: AgentText): LintFault[] {
  return nodes.flatMap((visited) => [
    ...findArithmetic(visited.node, agent),
    ...findPatterns(visited.node, agent),
    ...findUnquoted(visited.node, agent),
  ]);
}

const arithmeticFix =
  'bash evaluates the text as an expression, which can run commands and set variables: compare with `is_number TEXT NUMBER` or `in_range TEXT LOW HIGH`, or test it with `[[ $x =~ ^[0-9]+$ ]]` first';

function findArithmetic(node: SyntaxNode, agent: AgentText): LintFault[] {
  const fault = (what: string): LintFault[] => [
    { rule: 'arithmetic', severity: 'error', pos: node.pos, message: `arithmetic on text of the agent (${what}): ${arithmeticFix}` },
  ];
  if (node.type === 'TestBinary' && comparisons.has(node.operator))
    return agent.has(node.left) || agent.has(node.right) || namesAgentText(node, agent) ? fault(`[[ … ${node.operator} … ]]`) : [];
  if (node.type === 'TestUnary' && node.operator === '-v') return agent.has(node.operand) ? fault('[[ -v … ]]') : [];
  if (node.type === 'ArithmeticWord') return evaluatesAgentText(node, agent) ? fault(node.value.slice(0, 40)) : [];
  if (node.type === 'ArithmeticCommandExpansion') return agent.isPrinted(node.script) ? fault(node.text.slice(0, 40)) : [];
  if (node.type === 'Slice')
    return [node.offset, node.length].some((word) => word !== undefined && isExpression(word, agent)) ? fault('an offset') : [];
  if (node.type === 'ParameterExpansion' || node.type === 'Assignment')
    return node.index !== undefined && isExpression(node.index, agent) ? fault('a subscript') : [];
  return node.type === 'Command' && (commandEvaluates(wordsOf(node), agent) || declaresInteger(node, agent))
    ? fault(node.name?.text ?? '')
    : [];
}

/** In arithmetic, a bare name is a variable, and its value is evaluated. */
function evaluatesAgentText(node: { readonly value: string; readonly parts?: readonly WordPart[] | undefined }, agent: AgentText): boolean {
  const names = node.value.match(/[A-Za-z_]\w*/g) ?? [];
  return names.some((name) => agent.isVariable(name)) || partsOf(node).some(({ part }) => agent.isIn(part));
}

function namesAgentText({ left, right }: TestBinaryExpression, agent: AgentText): boolean {
  return [left, right].some((word) => agent.isVariable(literalOf(word) ?? ''));
}

const isExpression = (word: Word, agent: AgentText): boolean => agent.has(word) || agent.isVariable(literalOf(word) ?? '');

/** `let`, `declare -i`, and tests whether a variable is set. */
function commandEvaluates(words: readonly Word[], agent: AgentText): boolean {
  const [name, ...args] = words;
  const program = literalOf(name) ?? '';
  if (program === 'let') return args.some((arg) => agent.has(arg));
  if (program !== '[' && program !== 'test') return false;
  return args.some((arg, at) => literalOf(args[at - 1]) === '-v' && agent.has(arg));
}

/** What is assigned to a variable with the attribute -i is evaluated. */
function declaresInteger(command: Command, agent: AgentText): boolean {
  if (!/^(declare|typeset|local)$/.test(literalOf(command.name) ?? '')) return false;
  const isInteger = command.args.some((arg) => arg.type === 'Word' && /^-[a-zA-Z]*i/.test(arg.value));
  return isInteger && command.args.some((arg) => agent.isVariable(arg.type === 'Assignment' ? arg.name : arg.value));
}

const patternFix = 'a text such as `*` or an empty one matches everything: quote it, or compare with `is_text TEXT EXPECTED`';

function findPatterns(node: SyntaxNode, agent: AgentText): LintFault[] {
  const fault = (pos: number): LintFault[] => [
    { rule: 'pattern', severity: 'error', pos, message: `text of the agent is used as a pattern: ${patternFix}` },
  ];
  if (node.type === 'TestBinary' && matches.has(node.operator)) return isBare(node.right, agent) ? fault(node.pos) : [];
  if (node.type === 'CaseItem') return node.pattern.some((word) => isBare(word, agent)) ? fault(node.pos) : [];
  if (node.type !== 'Command') return [];
  const [name, ...args] = wordsOf(node);
  if (!/^[ef]?grep$/.test(literalOf(name) ?? '')) return [];
  const pattern = args.find((arg) => !arg.value.startsWith('-'));
  return pattern !== undefined && agent.has(pattern) ? fault(node.pos) : [];
}

const isBare = (word: Word, agent: AgentText): boolean => partsOf(word).some(({ part, isQuoted }) => !isQuoted && agent.isIn(part));

function findUnquoted(node: SyntaxNode, agent: AgentText): LintFault[] {
  if (node.type !== 'Command') return [];
  const [name, ...args] = wordsOf(node);
  const program = literalOf(name);
  if ((program !== '[' && program !== 'test') || !args.some((arg) => isBare(arg, agent))) return [];
  const message =
    'text of the agent without quotes in a test: a text such as `x = x -o x` is a test of its own: write `[ "$x" = … ]`, or `is_text "$x" …`';
  return [{ rule: 'unquoted', severity: 'error', pos: node.pos, message }];
}
