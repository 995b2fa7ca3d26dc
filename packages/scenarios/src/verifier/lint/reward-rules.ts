// How a check reports: a reward that cannot count, and verdicts that rest on the exit code of a program of the agent.

import type { Command, ParsedScript, SyntaxNode } from 'unbash';
import type { LintFault } from './lint-finding.ts';
import { isInSubshell, literalOf, type Visited, wordsOf } from './walk.ts';

export function findRewardFaults(tree: ParsedScript, nodes: readonly Visited[]): LintFault[] {
  const calls = nodes.flatMap((visited) => {
    const command = callOf(visited.node, 'reward');
    return command ? findMisuse(command, isInSubshell(visited)) : [];
  });
  return [...calls, ...nodes.flatMap(({ node }) => findGranted(node)), ...findLast(tree)];
}

/** The command, if it calls this. */
function callOf(node: SyntaxNode | undefined, name: string): Command | undefined {
  return node?.type === 'Command' && literalOf(node.name) === name ? node : undefined;
}

const subshellMessage =
  '`reward` does not count in a subshell, a pipeline or a substitution: keep the number in a variable, and report it at the end (`while … done < <(command)` is no pipeline)';

function findMisuse(command: Command, isInside: boolean): LintFault[] {
  const { pos } = command;
  const [, value] = wordsOf(command);
  const text = literalOf(value);
  const isWord = value === undefined || (text !== undefined && !isNumber(text));
  const wordMessage = `\`reward ${text ?? ''}\` has no number: write \`reward 0.5\``;
  return [
    ...(isInside ? [{ rule: 'reward-subshell', severity: 'error', pos, message: subshellMessage } as const] : []),
    ...(isWord ? [{ rule: 'reward-word', severity: 'error', pos, message: wordMessage } as const] : []),
  ];
}

const isNumber = (text: string): boolean => text.trim() !== '' && Number.isFinite(Number(text));

const statusMessage =
  'the exit code of a judged program decides, and the agent chooses it: compare what it prints (`is_text "$(judged …)" …`), or run hidden tests with `judged_tests`';

const statusFault = (pos: number): LintFault => ({ rule: 'judged-status', severity: 'error', pos, message: statusMessage });

/** `judged … && reward 1`, and `if judged …; then reward 1`. */
function findGranted(node: SyntaxNode): LintFault[] {
  if (node.type === 'AndOr')
    return node.commands.flatMap((command, at) => {
      const isGranted = node.operators[at] === '&&' && isJudged(command) && isGrant(node.commands[at + 1]);
      return isGranted ? [statusFault(command.pos)] : [];
    });
  if (node.type !== 'If' && node.type !== 'Elif') return [];
  const [clause, then] = [node.clause.commands.at(-1)?.command, node.then.commands[0]?.command];
  return isJudged(clause) && isGrant(then) ? [statusFault(node.pos)] : [];
}

/** The last command is the verdict of a script that reports no reward, also through `exit $?`. */
function findLast({ commands }: ParsedScript): LintFault[] {
  const last = commands.at(-1)?.command;
  const end = last?.type === 'AndOr' ? last.commands.at(-1) : last;
  if (end && isJudged(end)) return [statusFault(end.pos)];
  const exit = callOf(end, 'exit');
  const before = commands.at(-2)?.command;
  return exit && before && isJudged(before) && /^"?\$\?"?$/.test(exit.args[0]?.text ?? '$?') ? [statusFault(before.pos)] : [];
}

function isJudged(node: SyntaxNode | undefined): boolean {
  if (node?.type === 'Pipeline') return isJudged(node.commands.at(-1));
  return callOf(node, 'judged') !== undefined;
}

/** Reports a reward, or ends the check with the highest one. */
function isGrant(node: SyntaxNode | undefined): boolean {
  if (node?.type === 'AndOr') return isGrant(node.commands[0]);
  const [reward, exit] = [callOf(node, 'reward'), callOf(node, 'exit')];
  if (reward) return Number(literalOf(wordsOf(reward)[1]) ?? 1) !== 0;
  return callOf(node, 'true') !== undefined || (exit !== undefined && (exit.args.length === 0 || exit.args[0]?.text === '0'));
}
