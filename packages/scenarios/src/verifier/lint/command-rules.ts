// Commands that give the agent a say: its programs in the sandbox of the check, and what the check passes to judged programs.

import type { Command, SyntaxNode, Word } from 'unbash';
import type { AgentText } from './agent-text.ts';
import type { LintFault } from './lint-finding.ts';
import { isInSubshell, literalOf, type Visited, wordsOf } from './walk.ts';

/** Programs that run a file, or the project that they find in the working folder. */
const interpreters = /^(ba|da|z)?sh$|^python[0-9.]*$|^pypy3?$|^(node|bun|deno|perl|ruby|php|Rscript|lua)$/;
const projectRunners = /^(make|cmake|npm|npx|yarn|pnpm|pytest|tox|cargo|go|mvn|gradle|ant|rake)$/;
/** Programs that start another one, which is named after their options. */
const starters = /^(timeout|env|nice|nohup|time|command|stdbuf|xargs|setsid|sudo)$/;

export function findCommandFaults(nodes: readonly Visited[], agent: AgentText): LintFault[] {
  const own = findOwnFiles(nodes);
  return nodes.flatMap((visited) => {
    const { node } = visited;
    if (node.type !== 'Command') return [];
    return [...findAgentPrograms(node, own, agent), ...findPassedFiles(node), ...(isInSubshell(visited) ? [] : findExec(node))];
  });
}

function findAgentPrograms(command: Command, own: ReadonlySet<string>, agent: AgentText): LintFault[] {
  const words = skipStarters(wordsOf(command));
  const [name, ...args] = words.map((word) => literalOf(word));
  const fault = (what: string): LintFault[] => [
    {
      rule: 'runs-agent-file',
      severity: 'error',
      pos: command.pos,
      message: `${what} runs code of the agent with the rights of the check: write \`judged ${words
        .map(({ text }) => text)
        .join(' ')
        .slice(0, 60)}\`, and compare its output`,
    },
  ];
  if (name === undefined) return [];
  if (name === 'eval') return words.slice(1).some((word) => agent.has(word)) ? fault('eval') : [];
  if (isAgentFile(name, own)) return fault(name);
  if (projectRunners.test(name)) return args[0] === '--version' || args[0] === '-v' ? [] : fault(name);
  if (name === 'source' || name === '.') return isAgentPath(args[0] ?? '', own) ? fault(`${name} ${args[0]}`) : [];
  if (!interpreters.test(name)) return [];
  const module = args.indexOf('-m');
  if (module >= 0) return /^(pytest|unittest|nose2?|tox)$/.test(args[module + 1] ?? '') ? fault(`${name} -m ${args[module + 1]}`) : [];
  if (args.some((arg) => arg !== undefined && /^-[a-z]*[ce]$/.test(arg))) return [];
  const file = args.find((arg) => arg !== undefined && !arg.startsWith('-'));
  return file !== undefined && isAgentPath(file, own) ? fault(`${name} ${file}`) : [];
}

function skipStarters(words: readonly Word[]): readonly Word[] {
  if (!starters.test(literalOf(words[0]) ?? '')) return words;
  const at = words.findIndex((word, index) => index > 0 && !/^-|^[0-9.]+[smhd]?$|^\w+=/.test(word.value));
  return at < 0 ? [] : skipStarters(words.slice(at));
}

const isAgentFile = (name: string, own: ReadonlySet<string>): boolean =>
  (name.startsWith('./') || name.startsWith('../') || name.startsWith('/workspace/')) && isAgentPath(name, own);

/** A path relative to /workspace, or in it, that the script did not write itself. */
function isAgentPath(path: string, own: ReadonlySet<string>): boolean {
  if (path === '' || path === '-' || (path.startsWith('/') && !path.startsWith('/workspace/'))) return false;
  return !own.has(baseOf(path));
}

const baseOf = (path: string): string => path.split('/').at(-1) ?? '';

/** Files that the script writes: targets of redirections, and the last arguments of copies. */
function findOwnFiles(nodes: readonly Visited[]): ReadonlySet<string> {
  return new Set(nodes.flatMap(({ node }) => writtenBy(node)).map(baseOf));
}

function writtenBy(node: SyntaxNode): string[] {
  if (node.type === 'Redirect') return node.operator.startsWith('>') ? [literalOf(node.target) ?? ''] : [];
  if (node.type !== 'Command') return [];
  const [name = '', ...args] = wordsOf(node).map((word) => literalOf(word) ?? '');
  if (!/^(cp|mv|install|tee|ln)$/.test(name)) return [];
  return [args.at(-1) ?? '', ...args.filter((arg) => arg.startsWith('/') && !arg.startsWith('/workspace'))];
}

const expected = /expect|solution|answer|gold|secret|want/i;

function findPassedFiles(command: Command): LintFault[] {
  const [name, ...args] = wordsOf(command).map((word) => literalOf(word));
  if (name !== 'judged' && name !== 'judged_tests') return [];
  const file = args.find((arg, at) => (args[at - 1] === '--file' || args[at - 1] === '--env') && expected.test(arg ?? ''));
  if (file === undefined) return [];
  const message = `judged programs can read ${file}, and print it: keep expected values in the check, and compare there`;
  return [{ rule: 'judged-file', severity: 'warning', pos: command.pos, message }];
}

/** With arguments it replaces the shell of the check, which then cannot report. */
function findExec(command: Command): LintFault[] {
  if (literalOf(command.name) !== 'exec' || command.args.length === 0) return [];
  return [
    { rule: 'exec', severity: 'error', pos: command.pos, message: '`exec` replaces the shell that reports the reward: leave it out' },
  ];
}
